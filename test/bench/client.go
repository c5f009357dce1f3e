package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// api is the path of the binding.
const api = "/api/narad/v1"

// client asks over connections that are kept.
var client = &http.Client{
	Timeout:   30 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
}

// send makes one request and reads the answer into buf, which may be nil.
func (b *bench) send(method, url string, body []byte, buf *bytes.Buffer) (status int, err error) {
	r, err := http.NewRequestWithContext(b.ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if buf == nil {
		buf = &bytes.Buffer{}
	}
	buf.Reset()
	if _, err := io.Copy(buf, answer.Body); err != nil {
		return answer.StatusCode, err
	}
	return answer.StatusCode, nil
}

// get asks the host, and demands that it answers well.
func (b *bench) get(path string, buf *bytes.Buffer) error {
	return b.expect(http.StatusOK, http.MethodGet, b.host.url+api+path, nil, buf)
}

func (b *bench) expect(want int, method, url string, body []byte, buf *bytes.Buffer) error {
	if buf == nil {
		buf = &bytes.Buffer{}
	}
	status, err := b.send(method, url, body, buf)
	if err == nil && status != want {
		err = fmt.Errorf("got status %d, want %d: %.300s", status, want, buf.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	return nil
}

// command sends a command, and demands that it is accepted.
func (b *bench) command(path string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return b.expect(http.StatusAccepted, http.MethodPost, b.host.url+api+path, data, nil)
}

// create makes a session for an agent.
func (b *bench) create(id, agent string) error {
	data, err := json.Marshal(map[string]string{"sessionId": id, "agent": agent})
	if err != nil {
		return err
	}
	return b.expect(http.StatusCreated, http.MethodPost, b.host.url+api+"/sessions", data, nil)
}

// head is the last sequence of a session.
func (b *bench) head(id string) (uint64, error) {
	var buf bytes.Buffer
	if err := b.get("/sessions/"+id, &buf); err != nil {
		return 0, err
	}
	var s struct{ CurrentSessionSequence uint64 }
	err := json.Unmarshal(buf.Bytes(), &s)
	return s.CurrentSessionSequence, err
}
