package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxTyped bounds one line of input.
const maxTyped = 64 << 10

// keyboard reads lines from a file until it ends or close is called. A read of a
// terminal cannot be taken back, so it only begins when there is something to read.
type keyboard struct {
	// lines gets each line without its end, and is closed at the end of the file.
	lines chan string
	in    *os.File
	wake  *os.File // closed by close; the reader holds the other end
	done  chan struct{}
}

func newKeyboard(in *os.File) (*keyboard, error) {
	woken, wake, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	k := &keyboard{lines: make(chan string), in: in, wake: wake, done: make(chan struct{})}
	go k.read(woken)
	return k, nil
}

// close ends the reading and waits for it. It must be called once; a line that was read
// and not taken is lost.
func (k *keyboard) close() {
	k.wake.Close()
	for range k.lines {
	}
	<-k.done
}

func (k *keyboard) read(woken *os.File) {
	defer close(k.done)
	defer close(k.lines)
	defer woken.Close()
	lines := lineReader{in: bufio.NewReader(patient{k.in, woken}), most: maxTyped}
	for {
		line, err := lines.next()
		if err != nil {
			return
		}
		k.lines <- string(line)
	}
}

// patient is a file of which a read waits for input or for the other file to end.
type patient struct{ in, woken *os.File }

func (p patient) Read(into []byte) (int, error) {
	fds := []unix.PollFd{
		{Fd: int32(p.in.Fd()), Events: unix.POLLIN},
		{Fd: int32(p.woken.Fd()), Events: unix.POLLIN},
	}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("wait for input: %w", err)
		case fds[1].Revents != 0:
			return 0, io.EOF
		}
		return p.in.Read(into)
	}
}
