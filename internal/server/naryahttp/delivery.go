package naryahttp

import (
	"github.com/mahati-host/mahati/internal/server"
)

// delivery brings events to one stream. It belongs to the stream's handler.
type delivery struct {
	binding *Binding
	stream  *server.Stream
	source  source
	after   uint64 // the client has what is up to here
	sent    int    // frames
	live    bool   // the past was delivered
}

// Why a stream ends, for the log, where that is not the client's or the edge's doing.
const (
	endedBlock  = "block"
	endedBehind = "behind"
)

// run delivers until the client leaves, the server drains, or the stream has to end: at the
// end of a block of the past, or since the client takes too little. A client comes back to
// the same place after each of them.
func (d *delivery) run() (why string) {
	for {
		data, err := d.source.Poll(d.stream.Context())
		switch {
		case err != nil && d.stream.Context().Err() == nil:
			return server.ProblemOf(problemOf(err)).Code
		case err != nil:
			return ""
		}
		if len(data) > 0 {
			if why, over := d.send(behind(data, d.after)); over {
				return why
			}
			continue
		}
		d.live = true
		beat, err := d.stream.Wait(d.source.Wake())
		if err != nil || beat && d.stream.Write(heartbeat) != nil {
			return ""
		}
	}
}

// heartbeat fills the silence of a stream. A comment is no frame.
var heartbeat = []byte(":\n\n")

// send writes frames, and tells whether the stream is over with them.
func (d *delivery) send(data []byte) (why string, over bool) {
	if len(data) == 0 {
		return "", false // the client has it all
	}
	block := data
	if !d.live {
		block = cut(data, d.binding.opt.Block-d.sent)
		d.sent += count(block)
	}
	if d.stream.Write(block) != nil {
		return "", true
	}
	d.live = d.live || len(block) == len(data) && d.source.CaughtUp()
	if !d.live {
		return endedBlock, d.sent >= d.binding.opt.Block
	}
	lag, err := d.source.Lag(d.stream.Context())
	return endedBehind, err != nil || lag > d.binding.opt.MaxLag
}
