package process

import "os"

// Pipes makes pipes to a process that is being started. The zero value has none. After
// an error, which Err tells, what it makes is nil.
type Pipes struct {
	ours, theirs []*os.File
	err          error
}

// To makes a pipe that the process reads: it returns our end and its end.
func (p *Pipes) To() (ours, theirs *os.File) {
	r, w := p.open()
	return p.keep(w, r)
}

// From makes a pipe that the process writes.
func (p *Pipes) From() (ours, theirs *os.File) {
	r, w := p.open()
	return p.keep(r, w)
}

func (p *Pipes) open() (r, w *os.File) {
	if p.err == nil {
		r, w, p.err = os.Pipe()
	}
	return r, w
}

func (p *Pipes) keep(ours, theirs *os.File) (*os.File, *os.File) {
	p.ours, p.theirs = append(p.ours, ours), append(p.theirs, theirs)
	return ours, theirs
}

// Err says why a pipe could not be made.
func (p *Pipes) Err() error { return p.err }

// Started closes the ends of the process: once it was started it has them itself.
func (p *Pipes) Started() { closeAll(p.theirs) }

// Close closes both ends of all.
func (p *Pipes) Close() {
	closeAll(p.theirs)
	closeAll(p.ours)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() // nil is refused, and that is all; so is what is closed
	}
}
