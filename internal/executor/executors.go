package executor

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// The defaults of R31.
const (
	DefaultLease     = time.Minute
	DefaultHeartbeat = 15 * time.Second
	DefaultTokenLife = 5 * time.Minute
)

// Options are the optional parts of an Executors. The zero value is for production.
type Options struct {
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Random makes the secrets; crypto/rand when nil.
	Random io.Reader
	// Lease is how long a lease holds without a heartbeat, Heartbeat how often one is
	// asked for. DefaultLease and DefaultHeartbeat when 0.
	Lease, Heartbeat time.Duration
	// TokenLife is how long a call may take; DefaultTokenLife when 0.
	TokenLife time.Duration
	// Max is how many executors may be attached at once; 16,384 when 0.
	Max int
	// Arrived is told when an executor has become able to take calls.
	Arrived func(executor string)
	// Undelivered is told of a call that was delivered here and that no connection took.
	Undelivered func(Call)
	// Damaged is told of a stored lease that cannot be read.
	Damaged func(journal.Damage)
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.TokenLife == 0 {
		o.TokenLife = DefaultTokenLife
	}
	if o.Max == 0 {
		o.Max = 16_384
	}
	if o.Arrived == nil {
		o.Arrived = func(string) {}
	}
	if o.Damaged == nil {
		o.Damaged = func(journal.Damage) {}
	}
	if o.Undelivered == nil {
		o.Undelivered = func(Call) {}
	}
	return o
}

// Store is what Executors needs of a journal.
type Store interface {
	journal.Appender
	journal.Index
}

// Executors is all executors of a host. New makes one.
type Executors struct {
	opt   Options
	store Store

	work sync.WaitGroup // leases that are being given, or whose end is being noticed

	mu     sync.Mutex
	seats  map[string]*seat // guarded by mu
	closed bool             // guarded by mu
}

// New returns the executors of a store: Load reads their leases.
func New(store Store, options Options) *Executors {
	return &Executors{opt: options.withDefaults(), store: store, seats: map[string]*seat{}}
}

// Load takes up the leases that the store holds: each has one lease time from now. An
// executor whose lease is damaged has none, and attaches anew. It is called before
// anything else, and may be called again.
func (x *Executors) Load(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for r, err := range journal.Each[journal.LeaseRow](ctx, x.store, journal.Leases{}, x.opt.Damaged) {
		if err != nil {
			return fmt.Errorf("read leases: %w", err)
		}
		l, err := readLease(r)
		if err != nil {
			x.opt.Damaged(journal.Damage{Key: r.Key(), Cause: err})
			continue
		}
		l.expires = x.opt.Now().Add(x.opt.Lease)
		if x.seats[r.Executor] != nil {
			continue // taken up before
		}
		s := newSeat(x, r.Executor)
		x.seats[r.Executor] = s
		s.take(l)
	}
	return nil
}

// Close ends every connection, and waits for the attaches under way. It may be called
// twice.
func (x *Executors) Close() {
	x.mu.Lock()
	x.closed = true
	seats := x.seats
	x.seats = map[string]*seat{}
	x.mu.Unlock()
	for _, s := range seats {
		s.close()
	}
	x.work.Wait()
}

// begin lets something run that Close waits for.
func (x *Executors) begin() (done func(), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, false
	}
	x.work.Add(1)
	return x.work.Done, true
}

// seat returns the seat of an executor, made if it is not there.
func (x *Executors) seat(id string) (*seat, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.seats[id]
	switch {
	case s != nil:
	case x.closed:
		return nil, errClosed
	case len(x.seats) >= x.opt.Max:
		return nil, ErrTooMany
	default:
		s = newSeat(x, id)
		x.seats[id] = s
	}
	return s, nil
}

// turn returns the seat of an executor with its turn to attach.
func (x *Executors) turn(ctx context.Context, id string) (*seat, func(), error) {
	for {
		s, err := x.seat(id)
		if err != nil {
			return nil, nil, err
		}
		release, err := s.turn(ctx)
		if err != nil {
			return nil, nil, err
		}
		if now, ok := x.known(id); ok && now == s {
			return s, func() { release(); x.drop(s) }, nil
		}
		release() // it was dropped meanwhile
	}
}

// known returns the seat of an executor that has one.
func (x *Executors) known(id string) (*seat, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, ok := x.seats[id]
	return s, ok
}

// Attach gives an executor a new lease, which supersedes the one before (§11.1). The
// errors are those of access, ErrInvalidID, and those of the store. After Close nothing is
// recorded.
func (x *Executors) Attach(ctx context.Context, p access.Principal, id string) (*narad.ClientAttached, error) {
	if err := x.authorize(p, id); err != nil {
		return nil, err
	}
	done, ok := x.begin() // what is recorded after Close would be behind the next host's back
	if !ok {
		return nil, errClosed
	}
	defer done()
	s, release, err := x.turn(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := newLease(x.opt.Random, p)
	if err != nil {
		return nil, err
	}
	if err := x.carry(ctx, journal.Put{Row: l.row(id)}); err != nil {
		return nil, fmt.Errorf("record a lease: %w", err)
	}
	l.expires = x.opt.Now().Add(x.opt.Lease)
	x.tellUndelivered(s.take(l))
	return x.attached(id, l), nil
}

// Renew moves the end of a lease (§11.2), and tells the connection, whose client learns
// of it in no other way (R31).
func (x *Executors) Renew(p access.Principal, id, leaseID string) (*narad.ClientAttached, error) {
	s, err := x.holder(p, id)
	if err != nil {
		return nil, err
	}
	l, err := s.renew(p, leaseID)
	if err != nil {
		return nil, err
	}
	return x.attached(id, l), nil
}

// Connect makes a connection for the holder of the lease, which is the executor's only
// one from now on. Its Close must be called.
func (x *Executors) Connect(p access.Principal, id, leaseID string) (*Connection, error) {
	s, err := x.holder(p, id)
	if err != nil {
		return nil, err
	}
	c, err := s.connect(p, leaseID)
	if err != nil {
		return nil, err
	}
	x.opt.Arrived(id)
	return c, nil
}

// holder finds the seat of an executor that must be attached.
func (x *Executors) holder(p access.Principal, id string) (*seat, error) {
	if err := x.authorize(p, id); err != nil {
		return nil, err
	}
	s, ok := x.known(id)
	if !ok {
		return nil, ErrLeaseExpired
	}
	return s, nil
}

func (x *Executors) authorize(p access.Principal, id string) error {
	if err := access.AuthorizeExecutor(p, id); err != nil {
		return err
	}
	if !validID(id) {
		return ErrInvalidID
	}
	return nil
}

// Present reports whether an executor could take a call of a workspace now: its lease
// holds and reaches it, and it has a connection.
func (x *Executors) Present(id, workspace string) bool {
	s, ok := x.known(id)
	if !ok {
		return false
	}
	l, ok := s.leaseOfConnection()
	return ok && l.reaches(workspace)
}

// Issue makes a token for a call, bound to the lease that has a connection now; false
// if there is none, or none for the workspace. Nothing has happened yet: see [Grant].
func (x *Executors) Issue(c Call) (Grant, bool, error) {
	s, ok := x.known(c.Executor)
	if !ok {
		return Grant{}, false, nil
	}
	l, ok := s.leaseOfConnection()
	if !ok || !l.reaches(c.Workspace) {
		return Grant{}, false, nil
	}
	g, err := x.grant(c, l)
	return g, err == nil, err
}

func (x *Executors) grant(c Call, l lease) (Grant, error) {
	secret, err := draw(x.opt.Random, "mxt_")
	if err != nil {
		return Grant{}, err
	}
	expires := x.opt.Now().Add(x.opt.TokenLife).Truncate(time.Millisecond)
	record, err := narad.Encode(&narad.ClientToolExecute{
		Lease:          narad.Lease{ClientExecutorID: c.Executor, LeaseID: l.id},
		ExecutionToken: secret, ExecutionTokenExpiresAt: narad.Timestamp(expires),
		ToolCallID: c.ToolCallID, ToolName: c.ToolName, Args: c.Args,
	})
	if err != nil {
		return Grant{}, fmt.Errorf("encode client.tool.execute: %w", err)
	}
	stored, err := row(c, token{
		Token: hashOf(secret), Lease: l.hash, Principal: l.principal, RunID: c.RunID, Expires: expires.UnixMicro(),
	})
	return Grant{Call: c, Row: stored, ExpiresAt: expires, lease: l.hash, record: record}, err
}

// Deliver hands a call, whose token is durable, to the connection of its lease. If the
// lease was superseded meanwhile nobody gets it, and Undelivered is told.
func (x *Executors) Deliver(g Grant) {
	s, ok := x.known(g.Call.Executor)
	if !ok || !s.offer(g) {
		x.opt.Undelivered(g.Call)
	}
}

// TokenLife is how long a call may take, and wait for its executor.
func (x *Executors) TokenLife() time.Duration { return x.opt.TokenLife }

// Settle forgets a call that has ended: it is not sent again.
func (x *Executors) Settle(executor, toolCallID string) {
	if s, ok := x.known(executor); ok {
		s.settle(toolCallID)
	}
}

// Delivered reports whether a connection has taken a call, as far as this process knows.
func (x *Executors) Delivered(executor, toolCallID string) bool {
	s, ok := x.known(executor)
	return ok && s.delivered(toolCallID)
}

func (x *Executors) tellUndelivered(calls []Call) {
	for _, c := range calls {
		x.opt.Undelivered(c)
	}
}

// drop takes an executor's seat away, if nothing holds it.
func (x *Executors) drop(s *seat) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seats[s.id] == s && s.idle() {
		delete(x.seats, s.id)
	}
}

func (x *Executors) attached(id string, l lease) *narad.ClientAttached {
	return &narad.ClientAttached{
		Lease:               narad.Lease{ClientExecutorID: id, LeaseID: l.id},
		HeartbeatIntervalMs: x.opt.Heartbeat.Milliseconds(),
		LeaseExpiresAt:      narad.Timestamp(l.expires),
	}
}

// carry changes rows that belong to no session.
func (x *Executors) carry(ctx context.Context, c journal.Change) error {
	_, err := x.store.Append(ctx, journal.Batch{
		Session: journal.RowStream, Time: x.opt.Now().UTC(), Changes: []journal.Change{c}, Closing: true,
	})
	return err
}

const maxID = 128

// validID holds an executor id to the form of R4.
func validID(id string) bool {
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && !('0' <= c && c <= '9') && c != '.' && c != '_' && c != ':' && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}
