package conformance

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/conformance"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
)

// running is the host of all tests.
var running struct {
	url   *url.URL
	token string
	dir   string
}

func TestMain(m *testing.M) {
	code, err := withHost(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withHost(run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(script, []byte(conformance.Agent), 0o600); err != nil {
		return 1, err
	}
	settings := map[string]string{
		"HOME": dir, "MAHATI_LISTEN": "127.0.0.1:0", "MAHATI_STORAGE_RESERVE": "64MiB", "MAHATI_WORKSPACES_ROOTS": dir,
		"MAHATI_STREAMS_HEARTBEAT": "1s", "MAHATI_EXECUTORS_HEARTBEAT": "5s", "MAHATI_EXECUTORS_LEASE": "30s",
	}
	cfg, err := config.Load(filepath.Join(dir, "home"), func(name string) string { return settings[name] })
	if err != nil {
		return 1, err
	}
	if err := cfg.AddAgent("conformance", config.Agent{Kind: config.KindScript, File: script}); err != nil {
		return 1, err
	}
	d, err := daemon.Start(context.Background(), cfg, daemon.Options{})
	if err != nil {
		return 1, err
	}
	defer func() {
		if closed := d.Close(); err == nil {
			err = closed
		}
	}()
	secret, err := access.ReadFirst(d.Home())
	if err != nil {
		return 1, err
	}
	running.token, running.dir = secret.Reveal(), dir
	if running.url, err = url.Parse(d.URL()); err != nil {
		return 1, err
	}
	return run(), nil
}

// target is the host at an address.
func target(address string, only ...string) conformance.Target {
	return conformance.Target{
		URL: address, Token: running.token, Agent: "conformance", Executor: "conformance", CWD: running.dir, Only: only,
	}
}

// notOffered reports whether a check was skipped for a part of the protocol that the host
// does not have.
func notOffered(r conformance.Result) bool {
	return r.Outcome == conformance.Skip && strings.HasPrefix(r.Detail, "the host does not offer")
}

// TestHostPasses: this host passes every check, and none is skipped but for what it does not
// offer.
func TestHostPasses(t *testing.T) {
	report, err := conformance.Run(t.Context(), target(running.url.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Outcome != conformance.Pass && !notOffered(r) {
			t.Errorf("%s (%s, %s): got %s, want pass: %s", r.Check, r.Cites, r.Demands, r.Outcome, r.Detail)
		}
	}
	if len(report.Results) != len(conformance.Checks()) {
		t.Errorf("got %d results for %d checks", len(report.Results), len(conformance.Checks()))
	}
}
