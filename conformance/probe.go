package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// probe is what a check has of the host. Its methods end the check when they do not get
// what they must.
type probe struct {
	ctx    context.Context
	target Target
	base   string
	mark   string   // how the ids of this check begin
	made   []string // sessions
	named  int
	secret []string // what no report may hold
	ends   []func() // what to end with the check, the last first
}

// failf ends the check: the host is wrong.
func (p *probe) failf(format string, args ...any) {
	panic(ending{Fail, fmt.Sprintf(format, args...)})
}

// skipf ends the check: nothing can be said.
func (p *probe) skipf(format string, args ...any) {
	panic(ending{Skip, fmt.Sprintf(format, args...)})
}

// want ends the check unless something holds.
func (p *probe) want(holds bool, format string, args ...any) {
	if !holds {
		p.failf(format, args...)
	}
}

// clean takes the secrets out of a text, and bounds it.
func (p *probe) clean(text string) string {
	for _, s := range append(p.secret, p.target.Token) {
		if s != "" {
			text = strings.ReplaceAll(text, s, "<secret>")
		}
	}
	return short(text)
}

// short bounds a text that came from a host, on one line.
func short(text string) string {
	const most = 600
	text = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), "?")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return text
}

// leave ends what the check began and deletes its sessions, where the host lets it.
func (p *probe) leave() {
	defer func() { _ = recover() }() // nothing here is a demand
	for _, end := range slices.Backward(p.ends) {
		end()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), 5*time.Second)
	defer cancel()
	p.ctx = ctx
	for _, id := range p.made {
		p.post("/commands/stop-active-root", `{"sessionId":`+quoted(id)+`}`)
	}
	for _, id := range p.made {
		for p.request(http.MethodDelete, "/sessions/"+id, nil, nil).status == http.StatusConflict {
			p.pause()
		}
	}
}

// id makes an id that no other check uses.
func (p *probe) id() string {
	p.named++
	return p.mark + "-" + strconv.Itoa(p.named)
}

func quoted(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic("conformance: a text of the kit is UTF-8: " + err.Error())
	}
	return string(out)
}

// answer is what the host said to one request.
type answer struct {
	p      *probe
	asked  string // the request, for people
	status int
	header http.Header
	body   narad.Raw
}

func (a answer) String() string {
	body := string(bytes.TrimSpace(a.body))
	if len(body) > 240 {
		body = strings.ToValidUTF8(body[:240], "") + " ..."
	}
	return fmt.Sprintf("%s answers %d %s", a.asked, a.status, body)
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 64 << 20

// request performs one request. The header fields beat those that every request has; an
// empty value leaves one out.
func (p *probe) request(method, path string, header map[string]string, body io.Reader) answer {
	response, cancel := p.open(method, path, header, body)
	defer cancel()
	defer response.Body.Close()
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") && response.StatusCode == http.StatusOK {
		return answer{p, method + " " + path, response.StatusCode, response.Header, narad.Raw("(a stream)")} // it has no end
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		p.failf("%s %s: the answer breaks off: %v", method, path, err)
	}
	return answer{p, method + " " + path, response.StatusCode, response.Header, data}
}

// open performs a request whose answer is read as it comes.
func (p *probe) open(method, path string, header map[string]string, body io.Reader) (*http.Response, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.ctx)
	q, err := http.NewRequestWithContext(ctx, method, p.base+path, body)
	if err != nil {
		cancel()
		p.failf("%s %s: %v", method, path, err)
	}
	q.Header.Set("Authorization", "Bearer "+p.target.Token)
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		q.Header.Set(name, header[name])
		if header[name] == "" {
			q.Header.Del(name)
		}
	}
	// The header comes at once, also where nothing happens yet (§10.3).
	slow := time.AfterFunc(Patience, cancel)
	response, err := p.target.Client.Do(q)
	if !slow.Stop() || err != nil {
		cancel()
		p.failf("%s %s: no answer: %v", method, path, err)
	}
	return response, cancel
}

func (p *probe) get(path string) answer { return p.request(http.MethodGet, path, nil, nil) }

func (p *probe) post(path, body string) answer {
	return p.request(http.MethodPost, path, nil, strings.NewReader(body))
}

// is demands a status.
func (a answer) is(status int) answer {
	a.p.want(a.status == status, "%v, want %d", a, status)
	return a
}

// into reads the body as strict JSON.
func (a answer) into(v any) answer {
	if err := json.Unmarshal(a.body, v); err != nil {
		a.p.failf("%v: the body is not what it must be: %v", a, err)
	}
	return a
}

// ok is get for an answer that is read.
func (p *probe) ok(path string, v any) answer { return p.get(path).is(http.StatusOK).into(v) }

// problem demands a problem document of a code, or of any code where none is given (R23).
func (a answer) problem(status int, codes ...string) answer {
	a.is(status)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	a.p.want(kind == "application/problem+json", "%v: the content type is %q, want application/problem+json", a, kind)
	var document map[string]narad.Raw
	a.into(&document)
	code, ok := document["code"].IsString()
	a.p.want(ok && code != "", "%v: a problem document has a code", a)
	_, has := document["status"]
	a.p.want(!has, "%v: a problem document has no member status, which clients read as a command's", a)
	a.p.want(len(codes) == 0 || slices.Contains(codes, code), "%v: the code is %q, want %q", a, code, codes)
	return a
}

// commandAnswer is the answer to a command.
type commandAnswer struct {
	Status          string `json:"status"`
	Decision        string `json:"decision"`
	RequestID       string `json:"requestId"`
	RunID           string `json:"runId"`
	SessionSequence int64  `json:"sessionSequence"`
}

// statusOf are the HTTP codes of the eight words (R23).
var statusOf = map[string]int{
	"accepted": 202, "already_applied": 200, "not_found": 404, "forbidden": 403,
	"expired": 410, "conflict": 409, "rejected": 422, "unsupported": 501,
}

// command performs a command and demands a word, with its HTTP code.
func (p *probe) command(name, word, body string) commandAnswer {
	a := p.post("/commands/"+name, body)
	var read commandAnswer
	a.into(&read)
	p.want(read.Status == word, "%s: %v, want the status %q", name, a, word)
	p.want(a.status == statusOf[word], "%s: %v, want %d for %q", name, a, statusOf[word], word)
	return read
}

// session makes a session and returns its id.
func (p *probe) session() string { return p.sessionWith("") }

// sessionWith makes a session with more fields, each behind a comma.
func (p *probe) sessionWith(more string) string {
	id := p.id()
	p.made = append(p.made, id)
	p.post("/sessions", p.creation(id, more)).is(http.StatusCreated)
	return id
}

func (p *probe) creation(id, more string) string {
	body := `{"sessionId":` + quoted(id)
	if p.target.Agent != "" {
		body += `,"agent":` + quoted(p.target.Agent)
	}
	if p.target.CWD != "" {
		body += `,"cwd":` + quoted(p.target.CWD)
	}
	return body + more + "}"
}

// say sends a message, which must be accepted.
func (p *probe) say(session, prompt string) commandAnswer {
	return p.command("message", "accepted", `{"sessionId":`+quoted(session)+`,"content":`+quoted(prompt)+`}`)
}

// page is one page of history.
type page struct {
	Events              []narad.Raw `json:"events"`
	NextSessionSequence *int64      `json:"nextSessionSequence"`
	NextSequence        *int64      `json:"nextSequence"`
}

func (p *probe) page(session string, query string) page {
	var read page
	p.ok("/sessions/"+url.PathEscape(session)+"/events?"+query, &read)
	return read
}

// history reads all facts, by pages of a size.
func (p *probe) history(session string, size int) []narad.Raw {
	var all []narad.Raw
	for after := int64(0); ; {
		read := p.page(session, fmt.Sprintf("afterSessionSequence=%d&limit=%d", after, size))
		all = append(all, read.Events...)
		if read.NextSessionSequence == nil {
			return all
		}
		p.want(*read.NextSessionSequence > after, "the page after %d leads to %d: it must lead on", after, *read.NextSessionSequence)
		after = *read.NextSessionSequence
	}
}

// summary is what is known of a session.
type summary struct {
	SessionID              string   `json:"sessionId"`
	State                  string   `json:"state"`
	RequiredProfiles       []string `json:"requiredProfiles"`
	CurrentSessionSequence int64    `json:"currentSessionSequence"`
	ActiveRootRunID        string   `json:"activeRootRunId"`
}

func (p *probe) summary(session string) summary {
	var s summary
	p.ok("/sessions/"+url.PathEscape(session), &s)
	return s
}

// until looks again and again until something is found.
func (p *probe) until(what string, found func() bool) {
	for end := time.Now().Add(Patience); !found(); p.pause() {
		p.want(time.Now().Before(end), "%s does not come within %v", what, Patience)
	}
}

func (p *probe) pause() {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ctx.Done():
		p.failf("the check takes too long")
	}
}

// idle waits until nothing runs in a session.
func (p *probe) idle(session string) []narad.Raw {
	p.until("the end of the run", func() bool {
		s := p.summary(session)
		return s.ActiveRootRunID == "" && s.CurrentSessionSequence > 0
	})
	return p.history(session, 100)
}

// spoken makes a session in which a run has ended.
func (p *probe) spoken(prompt string) (id string, facts []narad.Raw) {
	id = p.session()
	p.say(id, prompt)
	return id, p.idle(id)
}

// awaitFact waits for a fact of a type and returns it.
func (p *probe) awaitFact(session, kind string) (fact narad.Raw) {
	p.until("a "+kind, func() bool {
		if fact = first(p.history(session, 100), kind); fact == nil {
			return false
		}
		return true
	})
	return fact
}

// ofType returns the facts of a type.
func ofType(facts []narad.Raw, kind string) (found []narad.Raw) {
	for _, f := range facts {
		if text(f, "type") == kind {
			found = append(found, f)
		}
	}
	return found
}

func first(facts []narad.Raw, kind string) narad.Raw {
	if found := ofType(facts, kind); len(found) > 0 {
		return found[0]
	}
	return nil
}

// text returns a string field, or "".
func text(record narad.Raw, name string) string {
	s, _ := record.Field(name).IsString()
	return s
}

// number returns an integer field, or 0.
func number(record narad.Raw, name string) int64 {
	n, _ := strconv.ParseInt(string(record.Field(name)), 10, 64)
	return n
}
