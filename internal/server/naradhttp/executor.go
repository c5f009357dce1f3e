package naradhttp

import (
	"errors"
	"net/http"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// leaseHeader carries a lease: a secret never stands in a URL (R31).
const leaseHeader = "Narad-Lease"

// attachExecutor gives an executor its lease (§11.1).
func (b *Binding) attachExecutor(w http.ResponseWriter, r *request) error {
	id, err := executorID(r)
	if err != nil {
		return err
	}
	attached, err := b.host.AttachExecutor(r.Context(), r.principal(), id)
	if err != nil {
		return err
	}
	return writeRecord(w, attached)
}

func executorID(r *request) (string, error) {
	id := r.PathValue("id")
	server.Annotate(r.Context(), "executor", id)
	return id, checkID("the executor id", id)
}

func writeRecord(w http.ResponseWriter, rec narad.Record) error {
	data, err := narad.Encode(rec)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, append(data, '\n'))
	return nil
}

// executorStream is the one channel to an executor: its calls, the renewals of its lease,
// and heartbeats. No frame has an id, since nothing here is authority (§11).
func (b *Binding) executorStream(w http.ResponseWriter, r *request) error {
	id, err := executorID(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil // it has no body, and must not take the place of one that has
	}
	c, err := b.host.ConnectExecutor(r.principal(), id, r.Header.Get(leaseHeader))
	if err != nil {
		return err
	}
	defer c.Close()
	st, err := b.streams.Open(w, r.Request)
	if err != nil {
		return err
	}
	server.Annotate(r.Context(), server.KeyEnded, b.serveExecutor(st, c))
	return nil
}

// serveExecutor writes what the connection has until one of the two ends; why is for the
// log.
func (b *Binding) serveExecutor(st *server.Stream, c *host.ExecutorConnection) (why string) {
	for {
		records, err := c.Next()
		if err != nil {
			return err.Error()
		}
		if len(records) > 0 {
			err := writeRecords(st, records)
			c.Wrote(err)
			if err != nil {
				return "the client left"
			}
			continue
		}
		beat, err := st.Wait(c.Wake())
		if err != nil || beat && st.Write(b.heartbeat()) != nil {
			return "the client left"
		}
	}
}

func writeRecords(st *server.Stream, records [][]byte) error {
	var frames []byte
	for _, record := range records {
		var err error
		if frames, err = sse.AppendFrame(frames, "", record); err != nil {
			return err
		}
	}
	return st.Write(frames)
}

// control takes what an executor says (§11.2, §11.3).
func (b *Binding) control(w http.ResponseWriter, r *request) error {
	id, err := executorID(r)
	if err != nil {
		return err
	}
	body, err := server.ReadBody(r.Request)
	if err != nil {
		return err
	}
	rec, err := narad.Decode(body)
	if err != nil {
		return refusedRecord(err)
	}
	switch c := rec.(type) {
	case *narad.ClientHeartbeat:
		return b.renew(w, r, id, c)
	case *narad.ClientToolFinish:
		return b.finish(w, r, id, c)
	}
	return bad("not_a_control", "the body must be a client.heartbeat or a client.tool.finish")
}

// refusedRecord says what is wrong with a record; its error repeats no value.
func refusedRecord(err error) error {
	var refusal *narad.Error
	if !errors.As(err, &refusal) {
		return bad("invalid_record", "the body must be a record of narad/v1")
	}
	if refusal.Code == narad.CodeTooLarge {
		return &server.Problem{HTTPStatus: http.StatusRequestEntityTooLarge, Code: string(refusal.Code), Detail: refusal.Error()}
	}
	return bad(string(refusal.Code), refusal.Error())
}

// sameExecutor holds a record to the executor of the path, and to the lease of the header
// where one is sent.
func sameExecutor(r *request, id string, l narad.Lease) error {
	if l.ClientExecutorID != id {
		return badField("clientExecutorId", "must be the executor of the path")
	}
	if sent := r.Header.Get(leaseHeader); sent != "" && sent != l.LeaseID {
		return badField("leaseId", "must be the lease of the header")
	}
	return nil
}

// renew answers a heartbeat with the lease's new end (R31).
func (b *Binding) renew(w http.ResponseWriter, r *request, id string, h *narad.ClientHeartbeat) error {
	if err := sameExecutor(r, id, h.Lease); err != nil {
		return err
	}
	attached, err := b.host.RenewLease(r.principal(), id, h.LeaseID)
	if err != nil {
		return err
	}
	return writeRecord(w, attached)
}

// finish answers as R33 says: a repeat is already_applied, another finish is a conflict.
func (b *Binding) finish(w http.ResponseWriter, r *request, id string, f *narad.ClientToolFinish) error {
	if err := sameExecutor(r, id, f.Lease); err != nil {
		return err
	}
	answer, err := b.host.FinishClientTool(r.Context(), r.principal(), f)
	switch {
	case err != nil:
		return err
	case answer.Err == decide.RefusedTooLarge:
		return &server.Problem{
			HTTPStatus: http.StatusRequestEntityTooLarge, Code: "event_too_large",
			Detail: "the response is larger than an event may be; the token is still open",
		}
	}
	return write(w, statusCodes[answer.Status], answered{Status: answer.Status, Detail: answer.Detail, RunID: answer.RunID})
}
