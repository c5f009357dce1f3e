package conformance

import (
	"net/http"
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// hostChecks are about the host as a whole.
var hostChecks = []Check{
	{"capabilities.answer", "§10.4", "capabilities name the protocol, its profiles, limits and the store", nothing, checkCapabilities},
	{"auth.required", "§12, R17", "nothing is answered without a valid token", nothing, checkAuth},
	{"errors.problem", "R23", "refusals are problem documents with a code and without a status member", nothing, checkProblems},
	{"errors.sanitised", "§12", "a refusal repeats neither the token nor what was sent", nothing, checkSanitised},
	{"errors.method", "R23", "an unknown address is 404, a wrong method 405 with Allow", nothing, checkMethods},
	{"input.json", "R23", "what is not strictly one JSON object is 400", nothing, checkJSON},
	{"input.size", "R7, R23", "a body above 1 MiB is 413, and a message too large is refused", nothing, checkSizes},
	{"input.ids", "R4", "ids have 1 to 128 of A-Z a-z 0-9 . _ : -", nothing, checkIDs},
}

type capabilities struct {
	ProtocolVersion string   `json:"protocolVersion"`
	ActiveProfiles  []string `json:"activeProfiles"`
	Epoch           string   `json:"epoch"`
	Limits          struct {
		HistoryLimit        int64 `json:"historyLimit"`
		HeartbeatIntervalMs int64 `json:"heartbeatIntervalMs"`
	} `json:"limits"`
}

func (p *probe) capabilities() (c capabilities) {
	p.ok("/capabilities", &c)
	return c
}

func checkCapabilities(p *probe) {
	c := p.capabilities()
	p.want(c.ProtocolVersion == narad.Version, "the protocol is %q, want %q", c.ProtocolVersion, narad.Version)
	p.wantProfiles(c.ActiveProfiles)
	p.want(c.Limits.HistoryLimit >= 1, "limits.historyLimit is %d", c.Limits.HistoryLimit)
	p.want(c.Limits.HeartbeatIntervalMs >= 1, "limits.heartbeatIntervalMs is %d", c.Limits.HeartbeatIntervalMs)
	p.want(c.Epoch != "", "there is no epoch, so that nobody can tell one store from another")
}

// wantProfiles demands ids of narad/v1, each once.
func (p *probe) wantProfiles(ids []string) narad.Profile {
	var all narad.Profile
	for _, id := range ids {
		profile, known := narad.ParseProfile(id)
		p.want(known && profile.IDs()[0] == id, "%q is no profile of narad/v1", id)
		p.want(all&profile == 0, "the profile %q is there twice", id)
		all |= profile
	}
	return all
}

func checkAuth(p *probe) {
	id := p.session()
	for _, token := range []string{"", "Bearer", "Bearer mht_" + strings.Repeat("0", 40), "Basic " + p.target.Token} {
		for _, path := range []string{"/capabilities", "/sessions", "/sessions/" + id, "/sessions/" + id + "/events", "/sessions/" + id + "/stream", "/interrupts?state=open"} {
			p.request(http.MethodGet, path, map[string]string{"Authorization": token}, nil).problem(http.StatusUnauthorized)
		}
		for _, path := range []string{"/sessions", "/commands/message", "/commands/resolve-interrupt", "/executors/x/attach"} {
			p.request(http.MethodPost, path, map[string]string{"Authorization": token}, strings.NewReader("{}")).problem(http.StatusUnauthorized)
		}
	}
	// A secret never stands in a URL, so a token there opens nothing (R30).
	p.request(http.MethodGet, "/capabilities?token="+p.target.Token+"&access_token="+p.target.Token,
		map[string]string{"Authorization": ""}, nil).problem(http.StatusUnauthorized)
}

func checkProblems(p *probe) {
	nobody := p.id()
	for _, path := range []string{"", "/attach", "/events", "/stream", "/messages"} {
		p.get("/sessions/"+nobody+path).problem(http.StatusNotFound, "not_found")
	}
	p.get("/sessions?limit=x").problem(http.StatusBadRequest)
}

func checkSanitised(p *probe) {
	const secret = "s3cr3t-of-the-harbour"
	for _, path := range []string{"/sessions", "/commands/message", "/commands/resolve-interrupt"} {
		for _, body := range []string{`{"` + secret + `":`, `{"sessionId":{"x":"` + secret + `"},"interruptId":["` + secret + `"]}`} {
			a := p.post(path, body)
			p.want(a.status >= 400 && a.status < 500, "%v, want a refusal", a)
			p.want(!strings.Contains(string(a.body), secret), "%v: the refusal repeats a value of the request", a)
			p.want(!strings.Contains(string(a.body), p.target.Token), "%s: the refusal repeats the token", a.asked)
		}
	}
}

func checkMethods(p *probe) {
	p.get("/nothing").problem(http.StatusNotFound)
	p.post("/commands/nothing", "{}").problem(http.StatusNotFound)
	a := p.request(http.MethodPut, "/sessions", nil, strings.NewReader("{}")).problem(http.StatusMethodNotAllowed)
	allow := a.header.Get("Allow")
	p.want(strings.Contains(allow, http.MethodPost) && strings.Contains(allow, http.MethodGet), "PUT /sessions: Allow is %q, want GET and POST in it", allow)
	p.get("/commands/message").problem(http.StatusMethodNotAllowed)
}

func checkJSON(p *probe) {
	deep := `{"sessionId":"x","content":"x","x":` + strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70) + `}`
	for _, body := range []string{
		``, `7`, `[]`, `null`, `{"sessionId":"x"`, `{} {}`, `{"sessionId":"a","sessionId":"b"}`, "{\"sessionId\":\"\xff\"}", deep,
	} {
		for _, path := range []string{"/sessions", "/commands/message"} {
			p.post(path, body).problem(http.StatusBadRequest)
		}
	}
	p.request(http.MethodPost, "/sessions", map[string]string{"Content-Encoding": "gzip"}, strings.NewReader("{}")).
		problem(http.StatusUnsupportedMediaType)
}

func checkSizes(p *probe) {
	id := p.session()
	long := strings.Repeat("x", 2<<20)
	for _, path := range []string{"/sessions", "/commands/message"} {
		p.post(path, `{"sessionId":`+quoted(id)+`,"content":"`+long+`"}`).problem(http.StatusRequestEntityTooLarge)
	}
	before := p.summary(id).CurrentSessionSequence
	a := p.post("/commands/message", `{"sessionId":`+quoted(id)+`,"content":"`+long[:narad.MaxEventBytes+1]+`"}`)
	p.want(a.status >= 400 && a.status < 500, "a message that no event can hold: the answer is %d, want a refusal", a.status)
	p.want(p.summary(id).CurrentSessionSequence == before, "a message that was refused left a fact")
}

func checkIDs(p *probe) {
	for _, id := range []string{".", "..", "a b", "a/b", "a\nb", "ä", strings.Repeat("x", 129)} {
		a := p.post("/sessions", p.creation(id, ""))
		p.want(a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity, "the session id %q: %v, want a refusal", id, a)
	}
	id := p.mark + ".A_z:9-" + strings.Repeat("x", 128-len(p.mark)-7)
	p.made = append(p.made, id)
	p.post("/sessions", p.creation(id, "")).is(http.StatusCreated)
	p.want(p.summary(id).SessionID == id, "a session of 128 bytes is not found under its id")
}
