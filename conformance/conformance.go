package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Prefix is where the binding stands below a host's address.
const Prefix = "/api/narad/v1"

// Patience is how long a check waits for what must come, such as the next fact.
const Patience = 30 * time.Second

// Target is the host to be checked. Only URL and Token are required.
type Target struct {
	// URL is the host's address, such as http://127.0.0.1:7717, with Prefix or without.
	URL string
	// Token is a bearer token that may do everything.
	Token string
	// Agent names an agent that does what [Agent] says. Without it whatever needs an
	// agent is skipped: another agent might do, and cost, anything.
	Agent string
	// Executor is an executor id that the token may attach, and that nobody else uses
	// meanwhile. Without it the checks of client execution are skipped.
	Executor string
	// CWD is given to the sessions that are made, if the host wants one.
	CWD string
	// Only performs the checks whose names begin with one of these. Empty: all.
	Only []string
	// Client performs the requests. Nil: a client of its own. A timeout would cut
	// streams off.
	Client *http.Client
}

// Outcome is how a check ended.
type Outcome string

// The outcomes.
const (
	Pass Outcome = "pass"
	Fail Outcome = "fail"
	Skip Outcome = "skip"
)

// Result is what became of one check.
type Result struct {
	// Check is its name, and Cites where its demand is written: a section of the
	// specification (§) or a ruling of docs/decisions.md (R).
	Check string `json:"check"`
	Cites string `json:"cites"`
	// Demands is the demand in one phrase.
	Demands string  `json:"demands"`
	Outcome Outcome `json:"outcome"`
	// Detail says what was wrong, or why it was skipped.
	Detail string `json:"detail,omitempty"`
}

// Report is what became of all checks, in their order.
type Report struct {
	URL     string   `json:"url"`
	Results []Result `json:"results"`
}

// Count returns how many checks ended so.
func (r Report) Count(o Outcome) int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == o {
			n++
		}
	}
	return n
}

// ErrChecks says that the names of checks fit none.
var ErrChecks = errors.New("no checks to run")

// ErrTarget says that a target cannot be checked at all.
var ErrTarget = errors.New("no host to check")

// Run performs the checks. Failures of the host are in the report; an error is
// [ErrTarget] for a target that makes no sense or does not answer, [ErrChecks], or the
// context's.
func Run(ctx context.Context, t Target) (Report, error) {
	base, err := address(t.URL)
	if err != nil {
		return Report{}, err
	}
	if t.Client == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute}
		defer own.CloseIdleConnections()
		t.Client = &http.Client{Transport: own}
	}
	t.Client = withoutRedirects(t.Client)
	checks, err := chosen(t.Only)
	if err != nil {
		return Report{}, err
	}
	if err := reach(ctx, t.Client, base); err != nil {
		return Report{}, err
	}
	report := Report{URL: strings.TrimSuffix(base, Prefix)}
	for _, c := range checks {
		outcome, detail := perform(ctx, c, t, base)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		report.Results = append(report.Results, Result{c.Name, c.Cites, c.Demands, outcome, detail})
	}
	return report, nil
}

// withoutRedirects shows a redirect as the answer that it is.
func withoutRedirects(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// reach demands that something answers at all: a host that is not there fails no check.
func reach(ctx context.Context, c *http.Client, base string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/capabilities", nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	answer, err := c.Do(q)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	return answer.Body.Close()
}

// address returns the address of the binding.
func address(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%w: an address such as http://127.0.0.1:7717 is required", ErrTarget)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if !strings.HasSuffix(u.Path, Prefix) {
		u.Path += Prefix
	}
	return u.String(), nil
}

// perform performs one check. A check ends by a panic of its own, at its first failure;
// it never leaves this function.
func perform(ctx context.Context, c Check, t Target, base string) (outcome Outcome, detail string) {
	if why := c.needs.missing(t); why != "" {
		return Skip, why
	}
	ctx, cancel := context.WithTimeout(ctx, 4*Patience)
	defer cancel()
	p := &probe{ctx: ctx, target: t, base: base, mark: "conformance-" + strings.ToLower(rand.Text()[:10])}
	defer p.leave()
	defer func() {
		switch end := recover().(type) {
		case nil:
		case ending:
			outcome, detail = end.outcome, p.clean(end.detail)
		default:
			panic(end)
		}
	}()
	c.run(p)
	return Pass, ""
}

// ending is how a check ends before its last line.
type ending struct {
	outcome Outcome
	detail  string
}
