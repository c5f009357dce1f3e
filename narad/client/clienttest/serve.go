package clienttest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/narad"
)

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"title": http.StatusText(status), "code": code, "detail": detail, "requestId": "req-1"})
}

func writeJSON(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }

// serve is the table of routes.
func (h *Host) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	if !h.authorized(r) {
		problem(w, http.StatusUnauthorized, "unauthenticated", "a valid token is needed")
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix+"/")
	if !ok {
		problem(w, http.StatusNotFound, "not_found", "")
		return
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i], _ = url.PathUnescape(part)
	}
	switch {
	case path == "capabilities":
		h.capabilities(w)
	case path == "interrupts":
		h.inbox(w)
	case path == "sessions" && r.Method == http.MethodPost:
		h.create(w, body)
	case path == "sessions":
		h.list(w, r)
	case parts[0] == "commands" && len(parts) == 2:
		h.command(w, parts[1], body)
	case parts[0] == "sessions":
		h.session(w, r, parts[1], strings.Join(parts[2:], "/"))
	default:
		problem(w, http.StatusNotFound, "not_found", "")
	}
}

func (h *Host) capabilities(w http.ResponseWriter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	writeJSON(w, map[string]any{
		"protocolVersion": narad.Version, "activeProfiles": h.options.Profiles, "epoch": h.epoch,
		"host": map[string]string{"name": "clienttest"}, "limits": map[string]int{"historyLimit": h.options.PageSize},
	})
}

// session serves one session's resources; it locks but for its stream, which goes on.
func (h *Host) session(w http.ResponseWriter, r *http.Request, id, resource string) {
	h.mu.Lock()
	s := h.sessions[id]
	if s == nil {
		h.mu.Unlock()
		problem(w, http.StatusNotFound, "not_found", "no such session")
		return
	}
	if resource == "stream" {
		h.mu.Unlock()
		h.stream(w, r, s)
		return
	}
	defer h.mu.Unlock()
	switch {
	case resource == "" && r.Method == http.MethodDelete:
		delete(h.sessions, id)
		w.WriteHeader(http.StatusNoContent)
	case resource == "archive", resource == "restore":
		s.archived = resource == "archive"
		writeJSON(w, s.summary(id))
	case resource == "":
		writeJSON(w, s.summary(id))
	case resource == "attach":
		h.attachLocked(w, s)
	case resource == "events":
		h.historyLocked(w, r, s)
	case resource == "messages":
		_, _ = w.Write(s.transcript(id))
	default:
		problem(w, http.StatusNotFound, "not_found", "")
	}
}

func (s *hosted) head() int64 {
	if len(s.facts) == 0 {
		return 0
	}
	return s.facts[len(s.facts)-1].sequence
}

func (s *hosted) summary(id string) map[string]any {
	state := "active"
	if s.archived {
		state = "archived"
	}
	return map[string]any{"sessionId": id, "state": state, "currentSessionSequence": s.head(), "color": "blue"}
}

func (h *Host) attachLocked(w http.ResponseWriter, s *hosted) {
	writeJSON(w, map[string]any{
		"capabilities": map[string]any{
			"protocolVersion": narad.Version, "activeProfiles": h.options.Profiles,
			"currentSessionSequence": s.head(), "historyLimit": h.options.PageSize,
			"heartbeatIntervalMs": h.options.Heartbeat.Milliseconds(), "activeRootRunId": s.state.ActiveRootRunID(),
		},
		"requiredProfiles": h.options.Profiles, "epoch": h.epoch, "boundarySessionSequence": s.head(),
	})
}

// An ordering is one of the three in which history may be asked for.
type ordering struct{ filter, cursor, field, next string }

var orderings = []ordering{
	{"", "afterSessionSequence", "sessionSequence", "nextSessionSequence"},
	{"rootRunId", "afterSequence", "sequence", "nextSequence"},
	{"workflowId", "afterWorkflowSequence", "workflowSequence", "nextWorkflowSequence"},
}

func (h *Host) historyLocked(w http.ResponseWriter, r *http.Request, s *hosted) {
	query := r.URL.Query()
	after, _ := strconv.ParseInt(query.Get("afterSessionSequence"), 10, 64)
	if after > s.head() {
		problem(w, http.StatusConflict, "cursor_ahead", "the cursor is above the head")
		return
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit > h.options.PageSize {
		limit = h.options.PageSize
	}
	page := []json.RawMessage{}
	var last narad.Raw
	more := false
	for _, f := range s.facts[firstAfter(s.facts, after):] {
		if !selected(f.raw, query.Get) {
			continue
		}
		if more = len(page) == limit; more {
			break
		}
		last = f.raw
		page = append(page, json.RawMessage(last))
	}
	answer := map[string]any{"events": page}
	for _, o := range orderings {
		if o.filter == "" || query.Get(o.filter) != "" {
			answer[o.next] = nil
		}
		if _, asked := answer[o.next]; asked && more {
			answer[o.next] = json.RawMessage(last.Field(o.field))
		}
	}
	writeJSON(w, answer)
}

// selected reports whether a fact passes the filters.
func selected(raw narad.Raw, query func(string) string) bool {
	return !slices.ContainsFunc(orderings[1:], func(o ordering) bool {
		if query(o.filter) == "" {
			return false
		}
		id, _ := raw.Field(o.filter).IsString()
		after, _ := strconv.ParseInt(query(o.cursor), 10, 64)
		place, _ := strconv.ParseInt(string(raw.Field(o.field)), 10, 64)
		return id != query(o.filter) || place <= after
	})
}

func (h *Host) create(w http.ResponseWriter, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, _ := narad.Raw(body).Field("sessionId").IsString()
	_, known := h.sessions[id]
	s := h.hostedLocked(id)
	if !known {
		w.WriteHeader(http.StatusCreated)
	}
	writeJSON(w, s.summary(id))
}

func (h *Host) list(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := make([]string, 0, len(h.sessions))
	for id := range h.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = len(ids)
	}
	items := []any{}
	answer := map[string]any{}
	for _, id := range ids {
		if id <= r.URL.Query().Get("cursor") {
			continue
		}
		if len(items) == limit {
			answer["nextCursor"] = items[limit-1].(map[string]any)["sessionId"]
			break
		}
		items = append(items, h.sessions[id].summary(id))
	}
	answer["items"] = items
	writeJSON(w, answer)
}

func (h *Host) inbox(w http.ResponseWriter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	items := []any{}
	for id, s := range h.sessions {
		for _, i := range s.state.Snapshot().Interrupts {
			if i.Open {
				items = append(items, map[string]any{
					"interruptId": i.InterruptID, "sessionId": id, "kind": i.Kind, "actions": i.Actions, "waitId": i.WaitID,
				})
			}
		}
	}
	writeJSON(w, map[string]any{"items": items})
}

// command answers each command once and remembers the answer by the command's id. An
// interrupt is decided once.
func (h *Host) command(w http.ResponseWriter, name string, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	raw := narad.Raw(body)
	id, _ := raw.Field("commandId").IsString()
	if answer, known := h.answers[id]; known && id != "" {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(answer))
		return
	}
	status, answer := http.StatusAccepted, `{"status":"accepted","runId":"run-of-`+name+`","sessionSequence":7}`
	if name == "resolve-interrupt" {
		status, answer = h.resolveLocked(raw)
	}
	if status == http.StatusAccepted {
		h.answers[id] = answer
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

func (h *Host) resolveLocked(body narad.Raw) (int, string) {
	interrupt, _ := body.Field("interruptId").IsString()
	decision, _ := body.Field("decision").IsString()
	switch first, closed := h.decided[interrupt]; {
	case !closed:
		h.decided[interrupt] = decision
		return http.StatusAccepted, `{"status":"accepted","decision":"` + decision + `","requestId":"` + interrupt + `"}`
	case first == decision:
		return http.StatusOK, `{"status":"already_applied","decision":"` + first + `","sessionSequence":9}`
	default:
		return http.StatusConflict, `{"status":"conflict","decision":"` + first + `","sessionSequence":9,"detail":"it is decided"}`
	}
}

// Commands is how many commands had an effect.
func (h *Host) Commands() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.answers)
}
