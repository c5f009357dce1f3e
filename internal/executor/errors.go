package executor

import "errors"

// The refusals of this package, besides those of package access. Nothing has changed
// after one.
var (
	// ErrWrongLease says that a lease is not the executor's present one, or not the
	// caller's.
	ErrWrongLease = errors.New("not the executor's lease")
	// ErrLeaseExpired says that the lease was not renewed in time: attach again.
	ErrLeaseExpired = errors.New("the lease has expired")
	// ErrTooMany says that as many executors are attached as the host allows.
	ErrTooMany = errors.New("too many executors are attached")
	// ErrInvalidID says that an executor id is not of the form of R4.
	ErrInvalidID = errors.New("not an executor id")
)
