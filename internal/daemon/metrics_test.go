package daemon_test

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/daemon"
)

// scrape is what GET /metrics said, by the names of the metrics.
type scrape map[string]*dto.MetricFamily

func (r *rig) scrape() scrape {
	r.t.Helper()
	got := r.want(200, "GET", "/metrics", "")
	if media := got.header.Get("Content-Type"); !strings.HasPrefix(media, "text/plain") {
		r.t.Errorf("media type %q", media)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(got.body + "\n"))
	if err != nil {
		r.t.Fatalf("%v in:\n%s", err, got.body)
	}
	return families
}

// value is that of the one series with these labels, "route", "GET /x", ...: a value, or
// the count of a histogram.
func (s scrape) value(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range s[name].GetMetric() {
		if !slices.Equal(pairs(m), labels) {
			continue
		}
		switch {
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}
	t.Errorf("no series %s%v: there is %v", name, labels, s[name].GetMetric())
	return -1
}

func pairs(m *dto.Metric) (list []string) {
	for _, l := range m.GetLabel() {
		list = append(list, l.GetName(), l.GetValue())
	}
	return list
}

func (s scrape) wantAll(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, want := range want {
		if got := s.value(t, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	bubble(t, daemon.Options{Version: "1.2.3"}, func(t *testing.T, r *rig) {
		before := r.scrape()
		before.wantAll(t, map[string]float64{
			"mahati_journal_facts_total": 0, "mahati_journal_batches_total": 1, // the first mark of the retention of events
			"mahati_feed_subscribers": 0,
			"mahati_agents_running":   0, "mahati_agents_limit": 8, "mahati_journal_broken": 0, "mahati_streams_open": 0,
			"mahati_storage_reserve_bytes": 1 << 30, "mahati_host_sessions_loaded": 0,
		})
		if before.value(t, "mahati_storage_free_bytes") <= 0 {
			t.Error("no free space")
		}
		before.value(t, "mahati_host_recovery_seconds")
		before.value(t, "mahati_build_info", "version", "1.2.3")

		r.say("s1", "hello")
		stream := r.follow("s1")
		go all(stream) // ends with the stream
		r.want(404, "GET", narad1+"/sessions/s2", "")
		r.send(r.request(t.Context(), "GET", "/nothing", "")) // nothing is there
		nobody := r.request(t.Context(), "GET", narad1+"/sessions", "")
		nobody.Header.Del("Authorization")
		r.send(nobody)
		foreign := r.request(t.Context(), "GET", narad1+"/sessions", "")
		foreign.Header.Set("Origin", "https://evil.example")
		r.send(foreign)
		<-time.After(time.Minute) // the run ends
		synctest.Wait()

		after := r.scrape()
		head, _ := strconv.ParseFloat(r.want(200, "GET", narad1+"/sessions/s1", "").field("currentSessionSequence"), 64)
		after.wantAll(t, map[string]float64{
			"mahati_journal_facts_total": head, "mahati_feed_subscribers": 1, "mahati_streams_open": 1,
			"mahati_streams_opened_total": 1, "mahati_host_queue_commands": 0, "mahati_agents_running": 0,
			"mahati_agents_queue_sessions": 0, "mahati_journal_queue_batches": 0, "mahati_http_foreign_total": 1,
			"mahati_http_unauthenticated_total": 1, "mahati_http_panics_total": 0, "mahati_host_sessions_loaded": 1,
			"mahati_journal_append_seconds": after.value(t, "mahati_journal_batches_total"),
			"mahati_journal_group_batches":  after.value(t, "mahati_journal_commit_seconds"),
		})
		if head < 5 || after.value(t, "mahati_journal_batches_total") < 2 {
			t.Errorf("got %v facts, %v batches: no traffic", head, after.value(t, "mahati_journal_batches_total"))
		}
		const requests = "mahati_http_requests_total"
		for _, want := range []struct{ route, code string }{
			{"POST /api/narad/v1/sessions", "201"}, {"POST /api/narad/v1/commands/message", "202"},
			{"GET /api/narad/v1/sessions/{id}", "404"}, {"none", "404"}, {"none", "401"}, {"none", "403"}, {"GET /metrics", "200"},
		} {
			if got := after.value(t, requests, "code", want.code, "route", want.route); got != 1 {
				t.Errorf("%v: got %v, want 1", want, got)
			}
		}
		_ = stream.Close()
		synctest.Wait()
		if got := r.scrape().value(t, requests, "code", "200", "route", "GET /api/narad/v1/sessions/{id}/stream"); got != 1 {
			t.Errorf("the stream that ended: got %v, want 1", got)
		}
		last := r.scrape()
		if got := last.value(t, "mahati_streams_ended_total", "route", "GET /api/narad/v1/sessions/{id}/stream", "why", "left"); got != 1 {
			t.Errorf("streams that were left: got %v, want 1", got)
		}
		oldest := before.value(t, "mahati_host_oldest_event")
		if got := before.value(t, "mahati_host_newest_event"); got != oldest-1 {
			t.Errorf("the newest event of an empty store: got %v, want %v", got, oldest-1)
		}
		if got := last.value(t, "mahati_host_newest_event"); got < oldest+5 || last.value(t, "mahati_host_oldest_event") != oldest {
			t.Errorf("the newest event: got %v, want those of a run behind %v", got, oldest)
		}
	})
}

// Why the host ended a stream is counted.
func TestMetricsOfStreamsThatTheHostEnds(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		begun := r.want(201, "POST", "/api/harness/v1/runs", `{"version":"fak.harness.run/v1","input_id":"i","text":"hello"}`)
		path := "/api/harness/v1/runs/" + begun.field("run_id") + "/stream?credit=1&subscriber=s"
		var streams []io.Reader
		for range 2 { // the second takes the place of the first
			response, err := r.http.Do(r.request(t.Context(), "GET", path, ""))
			if err != nil || response.StatusCode != 200 {
				t.Fatalf("stream: %v %v", response, err)
			}
			t.Cleanup(func() { _ = response.Body.Close() })
			streams = append(streams, response.Body)
		}
		all(streams[0])
		synctest.Wait()
		if got := r.scrape().value(t, "mahati_streams_ended_total", "route", "GET /api/harness/v1/runs/{run}/stream", "why", "superseded"); got != 1 {
			t.Errorf("streams that were superseded: got %v, want 1", got)
		}
	})
}

// A reader that takes nothing shows as one that is behind, by so many facts.
func TestMetricsShowLag(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		r.want(201, "POST", narad1+"/sessions", `{"sessionId":"s1"}`)
		r.follow("s1")
		synctest.Wait()
		r.want(202, "POST", narad1+"/commands/message", `{"sessionId":"s1","content":"hello"}`)
		<-time.After(5 * time.Second)
		after := r.scrape()
		lag := after.value(t, "mahati_feed_lag_facts")
		if lag < 1 || after.value(t, "mahati_feed_subscribers_behind") != 1 || after.value(t, "mahati_feed_lag_max_facts") != lag {
			t.Errorf("got %v facts behind, want the facts of a run", lag)
		}
	})
}

// No label takes what a client sends, so the number of series has a bound.
func TestMetricsTakeNothingFromClients(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		const marker = "marker4711"
		r.say(marker, marker)
		for i := range 50 {
			for _, path := range []string{"/", narad1 + "/", narad1 + "/sessions/", narad1 + "/commands/"} {
				path += marker + strconv.Itoa(i)
				r.do("GET", path+"?q="+marker, "")
				r.do("POST", path, marker)
				r.do(strings.ToUpper(marker), path, "")
			}
		}
		families := r.scrape()
		series := 0
		for name, family := range families {
			for _, m := range family.GetMetric() {
				series++
				if strings.Contains(strings.Join(pairs(m), " "), marker) || strings.Contains(strings.ToLower(m.String()), marker) {
					t.Errorf("%s has the client's words: %v", name, m)
				}
			}
		}
		if series > 200 {
			t.Errorf("%d series after 600 requests", series)
		}
	})
}

// Each name follows the conventions, has a help, and is explained to users.
func TestMetricsAreDocumented(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`(mahati_[a-z_]+)").FindAllSubmatch(guide, -1) {
		documented[string(name[1])] = true
	}
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		r.say("s1", "hello")
		_ = r.follow("s1").Close()
		synctest.Wait()
		r.scrape() // so that requests and streams have been counted
		families := r.scrape()
		unit := regexp.MustCompile(`_(total|seconds|bytes|facts|batches|commands|sessions|info|subscribers|subscribers_behind|topics|open|running|limit|loaded|broken|event)$`)
		for name, family := range families {
			if !strings.HasPrefix(name, "mahati_") {
				if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
					t.Errorf("%s is nobody's", name)
				}
				continue
			}
			if family.GetHelp() == "" || !unit.MatchString(name) {
				t.Errorf("%s: help %q", name, family.GetHelp())
			}
			if (family.GetType() == dto.MetricType_COUNTER) != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %v", name, family.GetType())
			}
			if !documented[name] {
				t.Errorf("%s is not in docs/http.md", name)
			}
		}
		for name := range maps.Keys(documented) {
			if families[name] == nil {
				t.Errorf("docs/http.md explains %s, which is not there", name)
			}
		}
	})
}

func TestWhoMayReadMetrics(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		tokens, err := access.Open(r.cfg.Home, access.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range access.Roles() {
			for _, workspaces := range [][]string{nil, {"default"}} {
				name := string(role) + strings.Join(workspaces, "")
				_, secret, err := tokens.Create(access.TokenRequest{
					Name: name, Grant: access.Grant{Roles: []access.Role{role}, Workspaces: workspaces},
				}, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				r.token = secret.Reveal()
				want := 403
				if (role == access.Observe || role == access.Admin) && workspaces == nil {
					want = 200
				}
				if got := r.do("GET", "/metrics", ""); got.status != want || want == 403 && got.field("code") != "forbidden" {
					t.Errorf("%s: got %d %.200s, want %d", name, got.status, got.body, want)
				}
			}
		}
		r.token = "mht_none"
		r.want(401, "GET", "/metrics", "")
		r.token = r.file("token")
		if got := r.want(405, "POST", "/metrics", ""); got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("Allow is %q", got.header.Get("Allow"))
		}
		if got := r.want(200, "HEAD", "/metrics", ""); got.body != "" {
			t.Errorf("HEAD: got %.100q", got.body)
		}
	})
}
