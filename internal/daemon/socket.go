package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// SocketFile is the Unix socket of a home, by which its owner reaches the host that runs there
// without a token.
const SocketFile = "narya.sock"

// maxSocketPath is how many bytes the system takes as the path of a socket.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ErrSocketPath says that the socket of a home has a longer path than the system takes. A short
// symbolic link to the home is a way out: the path is taken as it was given.
var ErrSocketPath = errors.New("path too long for a Unix socket")

// ErrSocketTaken says that at the path of a home's socket is something that is not left of a host:
// no socket at all, or one that somebody else serves. It was left alone.
var ErrSocketTaken = errors.New("path of the socket is taken")

// SocketPath returns the path of a home's socket. The error, ErrSocketPath, names path and limit.
func SocketPath(home string) (string, error) {
	path := filepath.Join(home, SocketFile)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("%s has %d bytes, %d are allowed: %w", path, len(path), maxSocketPath, ErrSocketPath)
	}
	return path, nil
}

// A socket is a listener that only the owner of the home reaches. Its file goes with it, unless
// another has taken the place of that file.
type socket struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
}

// listenSocket opens the socket of a home, whose lock is held and which is of mode 0700: nobody
// else reaches the file from its first moment on, whatever the umask.
func listenSocket(home string) (*socket, error) {
	path, err := SocketPath(home)
	if err != nil {
		return nil, err
	}
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	listener.SetUnlinkOnClose(false) // it would remove whatever is at the path
	own, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the socket owner-only: %w", err), listener.Close())
	}
	return &socket{listener, path, own}, nil
}

const (
	// probeTime is how long an answer of whoever serves a socket is waited for.
	probeTime = 5 * time.Second
	// dyingTime is how long one is waited for that is served although the lock of its home was free:
	// the system takes both from a host that was killed, one behind the other.
	dyingTime = 2 * time.Second
)

// clearSocket removes the socket that a dead host left. Whatever else is there stays.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for a socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is no socket, and is left alone: %w", path, ErrSocketTaken)
	}
	err = probeSocket(path)
	for left := dyingTime; err == nil && left > 0; left -= probePause {
		time.Sleep(probePause)
		err = probeSocket(path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return errors.Join(fmt.Errorf("%s is served by somebody else, and is left alone: %w", path, ErrSocketTaken), err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the socket of a dead host: %w", err)
	}
	return nil
}

const probePause = 20 * time.Millisecond

// probeSocket connects to whoever serves a socket.
func probeSocket(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Close removes the file of the socket while that is still held, so that its identity is nobody
// else's, and ends the listener.
func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.own) {
		if err := os.Remove(s.path); err != nil {
			return errors.Join(fmt.Errorf("remove the socket: %w", err), s.UnixListener.Close())
		}
	}
	return s.UnixListener.Close()
}
