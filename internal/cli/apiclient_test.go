package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/sse"
)

// beatingHost serves one stream a request, which says nothing but a heartbeat in each interval, some
// of them; then it is silent.
type beatingHost struct {
	told     string // the header, "" for none
	interval time.Duration
	beats    int
}

func (h beatingHost) RoundTrip(r *http.Request) (*http.Response, error) {
	body, stream := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = stream.CloseWithError(r.Context().Err()) })
	go func() {
		for range h.beats {
			if sleep(r.Context(), h.interval) != nil {
				return
			}
			_, _ = io.WriteString(stream, ":\n\n")
		}
	}()
	header := http.Header{}
	if h.told != "" {
		header.Set("Heartbeat-Interval-Ms", h.told)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body}, nil
}

// How long a stream may be silent follows from what its host says: one whose heartbeats are further
// apart than usual is read on, and one whose heartbeats stay away is not.
func TestTheSilenceOfAStreamIsTheHosts(t *testing.T) {
	for _, c := range []struct {
		host beatingHost
		want time.Duration
	}{
		{beatingHost{"600000", 10 * time.Minute, 12}, 150 * time.Minute},
		{beatingHost{"60000", time.Minute, 100}, 103 * time.Minute},
		{beatingHost{"1000", time.Second, 2}, 5 * time.Second},
		{beatingHost{"", 15 * time.Second, 2}, 75 * time.Second},
		{beatingHost{"soon", time.Minute, 2}, 45 * time.Second},
		{beatingHost{"-1", time.Minute, 2}, 45 * time.Second},
		{beatingHost{"9223372036854775807", time.Minute, 2}, 45 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s after %v", c.host.told, c.host.interval), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &apiClient{base: "http://host/v1", http: &http.Client{Transport: c.host}}
				begun := time.Now()
				_, err := client.stream(t.Context(), "follow", "/events", nil, nil, func(frames *sse.Reader) error {
					_, err := frames.Next()
					return err
				})
				if took := time.Since(begun); took != c.want || err == nil {
					t.Errorf("the stream of %+v was left after %v (%v), want %v", c.host, took, err, c.want)
				}
			})
		})
	}
}

// Who reads nothing for a while, as a pager does, does not lose the stream by it.
func TestNobodyWhoReadsIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &apiClient{base: "http://host/v1", http: &http.Client{Transport: beatingHost{"1000", time.Second, 5}}}
		begun := time.Now()
		_, err := client.stream(t.Context(), "follow", "/events", nil, nil, func(frames *sse.Reader) error {
			_ = sleep(t.Context(), time.Hour)
			_, err := frames.Next()
			return err
		})
		// The first heartbeat waited, four more come, and then three stay away.
		if took, want := time.Since(begun), time.Hour+4*time.Second+3*time.Second; took != want || err == nil {
			t.Errorf("the stream was left after %v (%v), want %v", took, err, want)
		}
	})
}
