package client_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
)

func TestSessionIsCreatedOnceThoughItsAnswerIsLost(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.DropAnswers(1, "/sessions")
		c := dial(t, h, client.Options{})
		made, created, err := c.CreateSession(t.Context(), client.NewSession{Title: "work"})
		if err != nil || created || made.SessionID == "" {
			t.Fatalf("got %+v, created %v, %v: the repetition must find the session of the first", made, created, err)
		}
		again, created, err := c.CreateSession(t.Context(), client.NewSession{SessionID: "named"})
		if err != nil || !created || again.SessionID != "named" {
			t.Fatalf("got %+v, created %v, %v", again, created, err)
		}
		var ids []string
		for s, err := range c.Sessions(t.Context(), client.SessionQuery{Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, s.SessionID)
		}
		if want := []string{made.SessionID, "named"}; len(ids) != 2 || !slices.Contains(ids, want[0]) || !slices.Contains(ids, want[1]) {
			t.Errorf("sessions %v, want %v", ids, want)
		}
	})
}

func TestSessionSummaryKeepsWhatIsUnknown(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		c := dial(t, h, client.Options{})
		s, err := c.Session(t.Context(), "s")
		if err != nil || s.State != "active" || s.CurrentSessionSequence != int64(clienttest.TurnLength) {
			t.Fatalf("got %+v, %v", s, err)
		}
		if color, _ := s.Raw.Field("color").IsString(); color != "blue" {
			t.Errorf("the summary %s lost its color", s.Raw)
		}
	})
}

func TestArchiveRestoreDelete(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Put("a/b c") // an id that a path has to escape
		c := dial(t, h, client.Options{})
		ctx := t.Context()
		if err := c.ArchiveSession(ctx, "a/b c"); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Session(ctx, "a/b c"); err != nil || s.State != "archived" {
			t.Errorf("got %+v, %v", s, err)
		}
		if err := c.RestoreSession(ctx, "a/b c"); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteSession(ctx, "a/b c"); err != nil {
			t.Fatal(err)
		}
		_, err := c.Session(ctx, "a/b c")
		wantCode(t, err, "not_found", client.GiveUp)
	})
}

func TestDeletionWhoseAnswerWasLostIsItsOwnEffect(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Put("s")
		gone := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if len(h.Requests("/sessions/s")) > 1 {
					w.WriteHeader(http.StatusGone)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
		h.Wrap(gone)
		h.DropAnswers(1, "/sessions/s")
		c := dial(t, h, client.Options{})
		if err := c.DeleteSession(t.Context(), "s"); err != nil {
			t.Errorf("the repetition: %v", err)
		}
		wantCode(t, c.DeleteSession(t.Context(), "s"), "gone", client.GiveUp)
	})
}

func TestListThatLeadsNowhereEnds(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		answers(h, 200, `{"items":[],"nextCursor":"x"}`)
		var last error
		for _, err := range dial(t, h, client.Options{}).Sessions(t.Context(), client.SessionQuery{}) {
			last = err
		}
		wantCode(t, last, client.CodeInvalidAnswer, client.GiveUp)
	})
}

func TestInboxShowsWhatIsOpen(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)[:7]...) // up to the pause
		h.Append("t", clienttest.Turn(2)...)     // decided
		var got []client.Interrupt
		for i, err := range dial(t, h, client.Options{}).Interrupts(t.Context(), client.InboxQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, i)
		}
		if len(got) != 1 || got[0].InterruptID != "ask-1" || got[0].SessionID != "s" || !slices.Equal(got[0].Actions, []string{"approve", "deny"}) {
			t.Errorf("inbox %+v", got)
		}
		if q := h.Requests("/interrupts")[0].Query; q != "state=open" {
			t.Errorf("query %q", q)
		}
	})
}

func TestCapabilitiesAndVersion(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		c := dial(t, h, client.Options{})
		caps, err := c.Capabilities(t.Context())
		if err != nil || caps.Epoch != "epoch-1" || len(caps.ActiveProfiles) != 12 || string(caps.Limits) == "" {
			t.Errorf("got %+v, %v", caps, err)
		}
		answers(h, 200, `{"protocolVersion":"narad/v2","activeProfiles":[]}`)
		_, err = c.Capabilities(t.Context())
		wantCode(t, err, client.Code(narad.CodeUnsupported), client.GiveUp)
	})
}

func TestHeartbeatIsBounded(t *testing.T) {
	for ms, want := range map[float64]time.Duration{
		0: 15 * time.Second, -1: 15 * time.Second, 1.5: 100 * time.Millisecond, 2000: 2 * time.Second, 1e18: 10 * time.Minute,
	} {
		var a client.Attachment
		a.Capabilities.HeartbeatIntervalMs = ms
		if got := a.Heartbeat(); got != want {
			t.Errorf("%v ms: got %v, want %v", ms, got, want)
		}
	}
}

func TestHistoryOfEveryKind(t *testing.T) {
	facts := append(clienttest.Story(3), &narad.WorkflowStarted{Event: narad.Event{WorkflowID: "w"}},
		&narad.WorkflowEnded{Event: narad.Event{WorkflowID: "w"}, Kind: narad.TypeWorkflowFinished})
	length := int64(clienttest.TurnLength)
	for name, c := range map[string]struct {
		query client.HistoryQuery
		from  int64
		to    int64
	}{
		"all":           {client.HistoryQuery{}, 1, 3*length + 2},
		"after":         {client.HistoryQuery{AfterSessionSequence: 5}, 6, 3*length + 2},
		"run":           {client.HistoryQuery{RootRunID: "run-2"}, length + 1, 2 * length},
		"run after":     {client.HistoryQuery{RootRunID: "run-2", AfterSequence: 4}, length + 5, 2 * length},
		"run and place": {client.HistoryQuery{RootRunID: "run-2", AfterSequence: 4, AfterSessionSequence: length + 4}, length + 5, 2 * length},
		"workflow":      {client.HistoryQuery{WorkflowID: "w", AfterWorkflowSequence: 1}, 3*length + 2, 3*length + 2},
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			h.Append("s", facts...)
			all := h.Facts("s")
			c.query.Limit = 2
			var got []string
			for raw, err := range dial(t, h, client.Options{}).Events(t.Context(), "s", c.query) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got = append(got, string(raw))
			}
			var want []string
			for _, raw := range all[c.from-1 : c.to] {
				want = append(want, string(raw))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestHistoryThatDoesNotLeadOnEnds(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		answers(h, 200, `{"events":[],"nextSessionSequence":0}`)
		var last error
		for _, err := range dial(t, h, client.Options{}).Events(t.Context(), "s", client.HistoryQuery{}) {
			last = err
		}
		wantCode(t, last, client.CodeInvalidAnswer, client.GiveUp)
	})
}

func TestCursorRefusalsSayWhatToDo(t *testing.T) {
	for code, action := range map[client.Code]client.Action{
		client.CodeCursorAhead: client.Resync, client.CodeCursorUnknown: client.Resync,
		client.CodeCursorConflict: client.GiveUp, "profiles_required": client.GiveUp,
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			answers(h, 409, `{"code":"`+string(code)+`"}`)
			_, err := dial(t, h, client.Options{}).History(t.Context(), "s", client.HistoryQuery{})
			wantCode(t, err, code, action)
		})
	}
}

func TestMessagesRecord(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		c := dial(t, h, client.Options{})
		m, err := c.Messages(t.Context(), "s")
		if err != nil || m.CoversThroughSessionSequence != int64(clienttest.TurnLength) || len(m.Items()) != 2 {
			t.Fatalf("got %+v, %v", m, err)
		}
		answers(h, 200, clienttest.Started("s", 1))
		_, err = c.Messages(t.Context(), "s")
		wantCode(t, err, client.CodeInvalidAnswer, client.GiveUp)
		answers(h, 200, `{"type":"graph.snapshot"}`)
		_, err = c.Graph(t.Context(), "s", "r")
		wantCode(t, err, client.CodeRecordRefused, client.GiveUp)
	})
}

func TestWorkspaceStream(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		streams(h, "id: w-1\ndata: {\"type\":\"session.created\",\"protocolVersion\":\"narad/v1\",\"eventId\":\"w-1\","+
			"\"timestamp\":\"2026-08-05T00:00:00Z\",\"workspaceId\":\"default\",\"sessionId\":\"s\",\"revision\":3}\n\n")
		s, err := dial(t, h, client.Options{}).WorkspaceStream(t.Context(), "default", client.StreamQuery{LastEventID: "w-0"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got, err := s.Next()
		if err != nil || got.Record.(*narad.Revision).SessionID != "s" {
			t.Fatalf("got %+v, %v", got, err)
		}
		r := h.Requests("/workspaces/default/stream")
		if len(r) != 1 || r[0].Header.Get("Last-Event-ID") != "w-0" {
			t.Errorf("requests %+v", r)
		}
	})
}

// TestProgramWithATransportOfItsOwn: a program may have put anything in the place of
// http.DefaultTransport, such as one that traces.
func TestProgramWithATransportOfItsOwn(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = http.NewFileTransport(http.Dir("."))
	for _, url := range []string{"http://127.0.0.1:7717", "unix:///run/mahati.sock"} {
		c, err := client.New(url, client.Options{})
		if err != nil {
			t.Fatalf("New(%q): %v", url, err)
		}
		c.Close()
	}
}

// A list with damaged entries is gone through to its end, and then they are named.
func TestDamagedEntriesComeLast(t *testing.T) {
	pages := map[string]string{
		"":  `{"items":[{"sessionId":"a"}],"nextCursor":"2","damaged":[{"sessionId":"b"},{}]}`,
		"2": `{"items":[{"sessionId":"c"}],"damaged":[{"sessionId":"d"}]}`,
	}
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Wrap(func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte(pages[r.URL.Query().Get("cursor")]))
			})
		})
		var got []string
		var damage *client.DamageError
		for s, err := range dial(t, h, client.Options{}).Sessions(t.Context(), client.SessionQuery{}) {
			if damage != nil {
				t.Errorf("a turn after the last: %v, %v", s, err)
			}
			if err == nil {
				got = append(got, s.SessionID)
			} else if !errors.As(err, &damage) {
				t.Fatal(err)
			}
		}
		if strings.Join(got, " ") != "a c" || damage == nil {
			t.Fatalf("got %q, %v; want a and c, and the damage", got, damage)
		}
		if want := []client.DamagedEntry{{SessionID: "b"}, {}, {SessionID: "d"}}; !slices.Equal(damage.Entries, want) {
			t.Errorf("damaged: got %+v, want %+v", damage.Entries, want)
		}
	})
}
