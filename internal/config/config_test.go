package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mahati-host/mahati/internal/config"
)

// env is an environment with the user's directory and what is given.
func env(pairs ...string) func(string) string {
	values := map[string]string{"HOME": "/home/ada"}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

// home makes a home with that file.
func home(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t *testing.T, file string, environment func(string) string, overrides ...config.Override) config.Config {
	t.Helper()
	c, err := config.Load(home(t, file), environment, overrides...)
	if err != nil {
		t.Fatalf("Load:\n%v\nof:\n%s", err, file)
	}
	c.Home = ""
	return c
}

// defaults are those of the contract, §10 of the design.
func defaults() config.Config {
	return config.Config{
		Listen:     "127.0.0.1:7717",
		Workspaces: config.Workspaces{Roots: []string{"/home/ada"}},
		Storage:    config.Storage{Reserve: 1 << 30, MaxAttachment: 32 << 20, MaxArtifact: 256 << 20},
		Agents:     config.Agents{MaxRunning: 8, CancelGrace: 10 * time.Second, IdleTimeout: 10 * time.Minute},
		Executors: config.Executors{
			Lease: time.Minute, Heartbeat: 15 * time.Second, TokenLife: 5 * time.Minute, Absent: config.Wait,
		},
		Narya:    config.Narya{Retention: 7 * 24 * time.Hour},
		Queue:    config.Queue{Max: 100},
		Sessions: config.Sessions{Mailbox: 64},
		History:  config.History{Page: 1000},
		Streams: config.Streams{
			WriteTimeout: 30 * time.Second, MaxLag: 65_536, Heartbeat: 15 * time.Second, Max: 4096, MaxPerPrincipal: 256,
		},
		Log: config.Log{Level: "info", Format: "text"},
	}
}

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	want := defaults()
	want.Home = dir
	got, err := config.Load(dir, env())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without a file (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(defaults(), load(t, "", env())); diff != "" {
		t.Errorf("with an empty file (-want +got):\n%s", diff)
	}
}

func TestEverySetting(t *testing.T) {
	file := `
listen = "0.0.0.0:80"
behind_proxy = true
allowed_hosts = ["mahati.example", "other:8443"]
cors_origins = ["https://app.example"]
tls = { cert = "cert.pem", key = "~/key.pem" }
workspaces.roots = ["/srv", "~/src"]

[storage]
reserve = 134217728
max_attachment = "5MiB"
max_artifact = "6MiB"

[agents]
max_running = 2
cancel_grace = "500ms"
idle_timeout = "1h"
default = "helper"

[agents.helper]
kind = "acp"
command = "npx 'some agent' --acp"
env = ["API_KEY"]
cwd = "/srv/agents"
auth_method = "api-key"
models = ["p/one", "p/two"]
variants = ["low"]

[agents.helper.mcp.files]
command = "server-files ."
env = ["FILES_TOKEN"]

[agents.helper.mcp.issues]
url = "https://mcp.example/mcp"
header_env = { Authorization = "ISSUES" }

[agents.rehearsal]
kind = "script"
file = "rehearsal.script"

[executors]
lease = "30s"
heartbeat = "10s"
token_life = "1h"
absent = "fail"

[narya]
tcp = true
retention = "24h"
[narya.styles]
brief = "Be brief."

[queue]
max = 7
[sessions]
mailbox = 8
[history]
page = 9

[streams]
write_timeout = "20s"
max_lag = 10
heartbeat = "5s"
max = 11
max_per_principal = 3

[log]
level = "debug"
format = "json"

[[policy]]
name = "no keys"
action = "deny"
kind = ["edit", "delete"]
path = "**/.ssh/*"

[[policy]]
action = "allow"
kind = "read"
tool = "Read*"

[[harness.classify]]
tool = "vault_*"
type = "tool.started"
agent = "help*"
class = "secret"
`
	dir := home(t, file)
	got, err := config.Load(dir, env())
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Home: dir, Listen: "0.0.0.0:80", BehindProxy: true,
		AllowedHosts: []string{"mahati.example", "other:8443"}, CORSOrigins: []string{"https://app.example"},
		TLS:        config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: "/home/ada/key.pem"},
		Workspaces: config.Workspaces{Roots: []string{"/srv", "/home/ada/src"}},
		Storage:    config.Storage{Reserve: 128 << 20, MaxAttachment: 5 << 20, MaxArtifact: 6 << 20},
		Agents: config.Agents{
			MaxRunning: 2, CancelGrace: 500 * time.Millisecond, IdleTimeout: time.Hour, Default: "helper",
			Named: map[string]config.Agent{
				"helper": {Kind: config.KindACP, Command: []string{"npx", "some agent", "--acp"}, Env: []string{"API_KEY"}, CWD: "/srv/agents",
					AuthMethod: "api-key", Models: []string{"p/one", "p/two"}, Variants: []string{"low"}, MCP: map[string]config.MCPServer{
						"files":  {Command: []string{"server-files", "."}, Env: []string{"FILES_TOKEN"}},
						"issues": {URL: "https://mcp.example/mcp", HeaderEnv: map[string]string{"Authorization": "ISSUES"}},
					}},
				"rehearsal": {Kind: config.KindScript, File: filepath.Join(dir, "rehearsal.script")},
			},
		},
		Policy: []config.Rule{
			{Name: "no keys", Action: config.Deny, Kinds: []string{"edit", "delete"}, Path: "**/.ssh/*"},
			{Name: "rule-2", Action: config.Allow, Kinds: []string{"read"}, Tool: "Read*"},
		},
		Harness: config.Harness{Classify: []config.Classification{
			{Tool: "vault_*", Type: "tool.started", Agent: "help*", Class: config.ClassSecret},
		}},
		Executors: config.Executors{
			Lease: 30 * time.Second, Heartbeat: 10 * time.Second, TokenLife: time.Hour, Absent: config.Fail,
		},
		Narya: config.Narya{TCP: true, Retention: 24 * time.Hour, Styles: map[string]string{"brief": "Be brief."}},
		Queue: config.Queue{Max: 7}, Sessions: config.Sessions{Mailbox: 8}, History: config.History{Page: 9},
		Streams: config.Streams{WriteTimeout: 20 * time.Second, MaxLag: 10, Heartbeat: 5 * time.Second, Max: 11, MaxPerPrincipal: 3},
		Log:     config.Log{Level: "debug", Format: "json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if unset := zeroFields(reflect.ValueOf(got), "Config"); len(unset) > 0 {
		t.Errorf("the test leaves out %v, so that it shows nothing of them", unset)
	}
}

// zeroFields lists the fields of a Config that are not set.
func zeroFields(v reflect.Value, name string) []string {
	if v.Kind() != reflect.Struct {
		if v.IsZero() {
			return []string{name}
		}
		return nil
	}
	var unset []string
	for i := range v.NumField() {
		unset = append(unset, zeroFields(v.Field(i), name+"."+v.Type().Field(i).Name)...)
	}
	return unset
}

func TestPrecedence(t *testing.T) {
	file := "listen = \"127.0.0.1:1\"\n[queue]\nmax = 1\n[storage]\nreserve = \"65MiB\"\n[log]\nlevel = \"warn\""
	environment := env("MAHATI_QUEUE_MAX", "2", "MAHATI_STORAGE_RESERVE", "66MiB", "MAHATI_BEHIND_PROXY", "true",
		"MAHATI_ALLOWED_HOSTS", "a.example, b.example", "MAHATI_LOG_LEVEL", "")
	got := load(t, file, environment, config.Override{Key: "storage.reserve", Value: "67MiB", Source: "--reserve"},
		config.Override{Key: "streams.heartbeat", Value: "3s", Source: "--heartbeat"})
	want := defaults()
	want.Listen = "127.0.0.1:1"
	want.Queue.Max = 2
	want.Storage.Reserve = 67 << 20
	want.BehindProxy = true
	want.AllowedHosts = []string{"a.example", "b.example"}
	want.Log.Level = "warn"
	want.Streams.Heartbeat = 3 * time.Second
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	tests := []struct {
		name string
		file string
		want []string // "LINE: KEY: part of the rule" of each error, in order
	}{
		{"unknown key", "\nlisten = \"127.0.0.1:1\"\nlisen = \"x\"\n", []string{`3: lisen: no such setting`}},
		{"unknown key in a section", "[streams]\nmax = 3\nmaximum = 4\n", []string{`3: streams.maximum: no such setting`}},
		{"unknown section", "[stream]\nmax = 3\n", []string{`1: stream: no such setting`}},
		{"unknown key in an inline table", "queue = { max = 3, min = 1 }", []string{`1: queue.min: no such setting`}},
		{"unknown key with dots", "queue.max = 3\nqueue.most.of = 1", []string{`2: queue.most: no such setting`}},
		{"section that is a value", "queue = 3", []string{`1: queue: no such setting`}},
		{"value that is a section", "[listen]\nport = 1", []string{`1: listen: must be a string`}},
		{"a style without a text", "[narya.styles]\nbrief = \"\"\n\"Not so\" = \"x\"", []string{`3: narya.styles.Not so: the name of a style`, `2: narya.styles.brief: 1 to`}},
		{"styles that are none", "[narya]\nstyles = 3", []string{`2: narya.styles: must be a table`}},
		{"a model without its provider", "[agents.a]\nkind = \"acp\"\ncommand = \"x\"\nmodels = [\"m\"]", []string{`4: agents.a.models: provider/model`}},
		{"variants of no model", "[agents.a]\nkind = \"acp\"\ncommand = \"x\"\nvariants = [\"low\"]", []string{`4: agents.a.variants: those of models`}},
		{"models of a script", "[agents.a]\nkind = \"script\"\nfile = \"x\"\nmodels = [\"p/m\"]", []string{`4: agents.a.models: stand in its file`}},
		{"home", "home = \"/x\"", []string{`1: home: --home`}},
		{"capitals", "Listen = \"127.0.0.1:1\"", []string{`1: Listen: no such setting`}},

		{"listen without a port", `listen = "localhost"`, []string{`1: listen: HOST:PORT`}},
		{"listen at a service name", `listen = "localhost:http"`, []string{`1: listen: HOST:PORT`}},
		{"listen at a port too high", `listen = "localhost:65536"`, []string{`1: listen: HOST:PORT`}},
		{"listen beyond loopback", `listen = "0.0.0.0:7717"`, []string{`1: listen: beyond loopback`}},
		{"listen on everything", `listen = ":7717"`, []string{`1: listen: beyond loopback`}},
		{"listen at a name", `listen = "mahati.example:7717"`, []string{`1: listen: beyond loopback`}},
		{"certificate without key", "[tls]\ncert = \"c.pem\"", []string{`2: tls.cert: tls.key`}},
		{"key without certificate", "[tls]\nkey = \"k.pem\"", []string{`2: tls.key: tls.cert`}},
		{"host with a scheme", `allowed_hosts = ["http://x"]`, []string{`1: allowed_hosts: "name"`}},
		{"star origin", `cors_origins = ["*"]`, []string{`1: cors_origins: http(s)`}},
		{"origin with a path", `cors_origins = ["https://x/"]`, []string{`1: cors_origins: http(s)`}},
		{"list of numbers", `allowed_hosts = [1]`, []string{`1: allowed_hosts: list of strings`}},
		{"relative root", `workspaces.roots = ["src"]`, []string{`1: workspaces.roots: absolute`}},

		{"reserve too small", `storage.reserve = "63MiB"`, []string{`1: storage.reserve: at least 64MiB`}},
		{"reserve too small in bytes", `storage.reserve = 1000`, []string{`1: storage.reserve: at least 64MiB`}},
		{"size with a fraction", `storage.reserve = "1.5GiB"`, []string{`1: storage.reserve: must be a size`}},
		{"size in another unit", `storage.reserve = "1GB"`, []string{`1: storage.reserve: must be a size`}},
		{"size that overflows", `storage.reserve = "9000000000GiB"`, []string{`1: storage.reserve: must be a size`}},
		{"negative size", `storage.reserve = "-1GiB"`, []string{`1: storage.reserve: must be a size`}},
		{"boolean in quotes", `behind_proxy = "true"`, []string{`1: behind_proxy: without quotes`}},
		{"number in quotes", `queue.max = "3"`, []string{`1: queue.max: whole number from 1`}},
		{"number with a fraction", `queue.max = 3.0`, []string{`1: queue.max: whole number from 1`}},
		{"number too low", `queue.max = 0`, []string{`1: queue.max: whole number from 1`}},
		{"number too high", `queue.max = 10001`, []string{`1: queue.max: to 10000`}},
		{"duration without a unit", `streams.heartbeat = 15`, []string{`1: streams.heartbeat: duration from 1s to 10m`}},
		{"duration too short", `streams.heartbeat = "999ms"`, []string{`1: streams.heartbeat: duration from 1s`}},
		{"level", `log.level = "loud"`, []string{`1: log.level: one of debug`}},

		{"agent of no kind", "[agents.x]\ncommand = \"a\"", []string{`1: agents.x.kind: "acp" or "script"`}},
		{"agent of another kind", "[agents.x]\nkind = \"llm\"", []string{`2: agents.x.kind: "acp" or "script"`}},
		{"agent without a command", "[agents.x]\nkind = \"acp\"", []string{`1: agents.x.command: needs the command`}},
		{"agent with an empty command", "[agents.x]\nkind = \"acp\"\ncommand = \"  \"", []string{`3: agents.x.command: needs the command`}},
		{"agent with an open quote", "[agents.x]\nkind = \"acp\"\ncommand = \"a 'b\"", []string{`3: agents.x.command: quote`}},
		{"script without a file", "[agents.x]\nkind = \"script\"", []string{`1: agents.x.file: needs a file`}},
		{"script with a command", "[agents.x]\nkind = \"script\"\nfile = \"f\"\ncommand = \"c\"", []string{`4: agents.x.command: only acp`}},
		{"unknown key of an agent", "[agents.x]\nkind = \"acp\"\ncommand = \"a\"\nmodel = \"m\"", []string{`4: agents.x.model: no such setting`}},
		{"name of an agent", "[agents.\"A b\"]\nkind = \"acp\"", []string{`1: agents.A b: name of an agent`}},
		{"default that is not there", "[agents]\ndefault = \"x\"", []string{`2: agents.default: no agent of this name`}},
		{"script that signs in", "[agents.x]\nkind = \"script\"\nfile = \"f\"\nauth_method = \"c\"", []string{`4: agents.x.auth_method: only acp`}},
		{"script with a server", "[agents.x]\nkind = \"script\"\nfile = \"f\"\n[agents.x.mcp.y]\ncommand = \"c\"", []string{`4: agents.x.mcp: only acp`}},
		{"way to sign in with an escape", acp("auth_method = \"a\\u001b\""), []string{`4: agents.x.auth_method: control characters`}},
		{"way to sign in that is a list", acp("auth_method = [\"a\"]"), []string{`4: agents.x.auth_method: must be a string`}},
		{"assignments that are no table", acp("executors = 1"), []string{`4: agents.x.executors: must be a table of tools`}},
		{"assignment to nobody", acp("executors = {a = \"\"}"), []string{`4: agents.x.executors.a: must be the id of an executor`}},
		{"assignment to something else", acp("executors = {a = 1}"), []string{`4: agents.x.executors.a: must be the id of an executor`}},
		{"pattern in the middle", acp("executors = {\"a*b\" = \"e\"}"), []string{`4: agents.x.executors.a*b: must be the name of a tool`}},
		{"assignment of nothing", acp("executors = {\"\" = \"e\"}"), []string{`4: agents.x.executors.: must be the name of a tool`}},
		{"servers that are no tables", acp("mcp = [\"a\"]"), []string{`4: agents.x.mcp: [agents.x.mcp.NAME]`}},
		{"server that is no table", acp("mcp.y = \"a\""), []string{`4: agents.x.mcp.y: must be a table`}},
		{"name of a server", acp("mcp.\"A b\" = {command = \"a\"}"), []string{`4: agents.x.mcp.A b: name of a server`}},
		{"server of nothing", acp("[agents.x.mcp.y]"), []string{`4: agents.x.mcp.y.command: a command or a url`}},
		{"server of both", acp("[agents.x.mcp.y]\ncommand = \"a\"\nurl = \"http://x\""), []string{`5: agents.x.mcp.y.command: a command or a url`}},
		{"unknown key of a server", acp("[agents.x.mcp.y]\ncommand = \"a\"\ntoken = \"t\""), []string{`6: agents.x.mcp.y.token: no such setting`}},
		{"server with an empty program", acp("[agents.x.mcp.y]\ncommand = [\"\"]"), []string{`5: agents.x.mcp.y.command: name a program`}},
		{"server with values", acp("[agents.x.mcp.y]\ncommand = \"a\"\nenv = [\"A=s3cret\"]"), []string{`6: agents.x.mcp.y.env: names of variables`}},
		{"environment of a url", acp("[agents.x.mcp.y]\nurl = \"http://x\"\nenv = [\"A\"]"), []string{`6: agents.x.mcp.y.env: only a server with a command`}},
		{"headers of a command", acp("[agents.x.mcp.y]\ncommand = \"a\"\nheader_env = {A = \"A\"}"), []string{`6: agents.x.mcp.y.header_env: only a server with a url`}},
		{"url of another scheme", acp("[agents.x.mcp.y]\nurl = \"file:///x\""), []string{`5: agents.x.mcp.y.url: http(s)`}},
		{"url with a password", acp("[agents.x.mcp.y]\nurl = \"http://u:p@x\""), []string{`5: agents.x.mcp.y.url: without a user`}},
		{"name of a header", acp("[agents.x.mcp.y]\nurl = \"http://x\"\nheader_env = {\"A b\" = \"A\"}"), []string{`6: agents.x.mcp.y.header_env: names of headers`}},
		{"header twice", acp("[agents.x.mcp.y]\nurl = \"http://x\"\nheader_env = {Aa = \"A\", aA = \"A\"}"), []string{`6: agents.x.mcp.y.header_env: each once`}},
		{"header with a value", acp("[agents.x.mcp.y]\nurl = \"http://x\"\nheader_env = {A = \"Bearer s3cret\"}"), []string{`6: agents.x.mcp.y.header_env: names of variables`}},

		{"rule without an action", "[[policy]]\nkind = \"read\"", []string{`1: policy[0].action: allow, ask or deny`}},
		{"rule with another action", "[[policy]]\naction = \"maybe\"", []string{`2: policy[0].action: allow, ask or deny`}},
		{"second rule", "[[policy]]\naction = \"ask\"\n[[policy]]\naction = \"ask\"\nkind = \"reed\"", []string{`5: policy[1].kind: one or a list of read`}},
		{"unknown key of a rule", "[[policy]]\naction = \"ask\"\nwhen = \"x\"", []string{`3: policy[0].when: no such setting`}},
		{"pattern", "[[policy]]\naction = \"ask\"\npath = \"[a\"", []string{`3: policy[0].path: pattern`}},
		{"double star in a word", "[[policy]]\naction = \"ask\"\npath = \"a**/b\"", []string{`3: policy[0].path: stand alone`}},
		{"empty pattern", "[[policy]]\naction = \"ask\"\ntool = \"\"", []string{`3: policy[0].tool: leave it out`}},
		{"two rules of one name", "[[policy]]\naction = \"ask\"\nname = \"n\"\n[[policy]]\naction = \"ask\"\nname = \"n\"", []string{`6: policy[1].name: another rule`}},
		{"one table for all rules", "[policy]\naction = \"ask\"", []string{`1: policy: [[policy]]`}},

		{"class of nobody", "[[harness.classify]]\ntool = \"x\"", []string{`1: harness.classify[0].class: public, private or secret`}},
		{"another class", "[[harness.classify]]\nclass = \"topsecret\"", []string{`2: harness.classify[0].class: public, private or secret`}},
		{"type of no record", "[[harness.classify]]\nclass = \"public\"\n[[harness.classify]]\nclass = \"secret\"\ntype = \"tool.finished\"", []string{`5: harness.classify[1].type: one of`}},
		{"class of a checkpoint", "[[harness.classify]]\nclass = \"secret\"\ntype = \"checkpoint\"", []string{`3: harness.classify[0].type: one of`}},
		{"pattern of an agent", "[[harness.classify]]\nclass = \"secret\"\nagent = \"[\"", []string{`3: harness.classify[0].agent: pattern`}},
		{"long pattern of a tool", "[[harness.classify]]\nclass = \"secret\"\ntool = \"" + strings.Repeat("x", 257) + "\"", []string{`3: harness.classify[0].tool: at most 256`}},
		{"too many classes", strings.Repeat("[[harness.classify]]\nclass = \"secret\"\n", 65), []string{`1: harness.classify: at most 64`}},
		{"unknown key of a classification", "[[harness.classify]]\nclass = \"secret\"\nrun = \"r\"", []string{`3: harness.classify[0].run: no such setting`}},
		{"class that is no string", "[[harness.classify]]\nclass = 1", []string{`2: harness.classify[0].class: a string`}},
		{"one table for all classes", "[harness.classify]\nclass = \"secret\"", []string{`1: harness.classify: [[harness.classify]]`}},
		{"another table of the harness", "[harness]\ncredit = 3", []string{`2: harness.credit: no such setting`}},

		{"several at once", "a = 1\n[queue]\nmax = 0\n[log]\nlevel = \"x\"\n", []string{`1: a: no such`, `5: log.level: one of`, `3: queue.max: whole`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := home(t, tt.file)
			_, err := config.Load(dir, env())
			got := errorsOf(err)
			if len(got) != len(tt.want) {
				t.Fatalf("%d errors, want %d:\n%v\nof:\n%s", len(got), len(tt.want), err, tt.file)
			}
			for i, want := range tt.want {
				line, rest, _ := strings.Cut(want, ": ")
				key, rule, _ := strings.Cut(rest, ": ")
				source := filepath.Join(dir, config.FileName) + ":" + line
				if got[i].Source != source || got[i].Key != key || !strings.Contains(got[i].Rule, rule) {
					t.Errorf("%v; want line %s, key %s, rule with %q; of:\n%s", got[i], line, key, rule, tt.file)
				}
			}
		})
	}
}

// acp is an agent with further lines, from the fourth on.
func acp(lines string) string { return "[agents.x]\nkind = \"acp\"\ncommand = \"a\"\n" + lines }

// errorsOf takes the join apart.
func errorsOf(err error) []*config.Error {
	var found []*config.Error
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		var one *config.Error
		if errors.As(err, &one) {
			found = append(found, one)
		}
	}
	return found
}

func TestErrorsOfEnvironmentAndFlags(t *testing.T) {
	_, err := config.Load(t.TempDir(), env("MAHATI_QUEUE_MAX", "many", "MAHATI_HISTORY_PAGE", "1001", "MAHATI_BEHIND_PROXY", "yes"),
		config.Override{Key: "listen", Value: "x", Source: "--listen"},
		config.Override{Key: "listens", Value: "x", Source: "--listens"})
	want := []string{
		`MAHATI_BEHIND_PROXY: behind_proxy = "yes": must be true or false`,
		`MAHATI_QUEUE_MAX: queue.max = "many": must be a whole number from 1 to 10000`,
		`MAHATI_HISTORY_PAGE: history.page = "1001": must be a whole number from 1 to 1000`, // R26
		`--listen: listen = "x": must be HOST:PORT, such as "127.0.0.1:7717"`,
		`--listens: listens: there is no such setting`,
	}
	if diff := cmp.Diff(want, strings.Split(fmt.Sprint(err), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBeyondLoopback(t *testing.T) {
	for file, want := range map[string]bool{
		`listen = "localhost:1"`:                        true,
		`listen = "127.1.2.3:1"`:                        true,
		`listen = "[::1]:0"`:                            true,
		`listen = "192.0.2.1:1"`:                        false,
		"listen = \"192.0.2.1:1\"\nbehind_proxy = true": true,
		"listen = \"192.0.2.1:1\"\n[tls]\ncert = \"c.pem\"\nkey = \"k.pem\"": true,
		"listen = \"192.0.2.1:1\"\n[tls]\ncert = \"c.pem\"":                  false,
	} {
		if _, err := config.Load(home(t, file), env()); (err == nil) != want {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Values in the list would be secrets in a file, and then in an error.
func TestValuesInEnvAreNotShown(t *testing.T) {
	for _, lines := range []string{
		`env = ["KEY=s3cret"]`, `mcp.y = {command = "a", env = ["KEY=s3cret"]}`, `mcp.y = {command = "a", token = "s3cret"}`,
		`mcp.y = {url = "http://x", header_env = {Authorization = "Bearer s3cret"}}`, `mcp.y = {url = "http://u:s3cret@x"}`,
	} {
		_, err := config.Load(home(t, acp(lines)), env())
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v", lines, err)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for name, file := range map[string]string{
		"not TOML":      "listen = \nqueue",
		"key twice":     "listen = \"a\"\nlisten = \"b\"\n",
		"not UTF-8":     "listen = \"\xff\"\n",
		"far too large": "#" + strings.Repeat("x", 1<<20),
	} {
		dir := home(t, file)
		_, err := config.Load(dir, env())
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, config.FileName)) {
			t.Errorf("%s: %v; want the path of the file", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, config.FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(dir, env()); err == nil {
		t.Error("a directory in place of the file")
	}
}

func TestHome(t *testing.T) {
	tests := []struct {
		env  func(string) string
		want string
	}{
		{env(), "/home/ada/.local/state/mahati"},
		{env("XDG_STATE_HOME", "/state"), "/state/mahati"},
		{env("XDG_STATE_HOME", "relative"), "/home/ada/.local/state/mahati"},
		{env("XDG_STATE_HOME", "/state", "MAHATI_HOME", "/elsewhere"), "/elsewhere"},
		{func(string) string { return "" }, ""},
	}
	for _, tt := range tests {
		got, err := config.DefaultHome(tt.env)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("DefaultHome = %q, %v; want %q", got, err, tt.want)
		}
	}
	if _, err := config.Load("relative", env()); err == nil {
		t.Error("a relative home is taken")
	}
}

func TestWithoutAUserDirectoryNoRootIsAssumed(t *testing.T) {
	c, err := config.Load(t.TempDir(), func(string) string { return "" })
	if err != nil || c.Workspaces.Roots == nil || len(c.Workspaces.Roots) != 0 {
		t.Errorf("roots %#v, %v, want an empty list: nil would allow any directory", c.Workspaces.Roots, err)
	}
	if _, err := config.Load(home(t, `workspaces.roots = ["~/src"]`), func(string) string { return "" }); err == nil {
		t.Error("~ without HOME is taken")
	}
}

// The longest pattern that fits says which executor runs a tool; "*" alone binds the runs
// and no tool.
func TestExecutorsOfTools(t *testing.T) {
	a := config.Agent{Executors: map[string]string{"*": "any", "fs/*": "laptop", "fs/write": "desk", "f*": "far"}}
	for tool, want := range map[string]string{
		"fs/read": "laptop", "fs/write": "desk", "fs/": "laptop", "fetch": "far", "open": "", "*": "", "": "",
	} {
		if got := a.Executor(tool); got != want {
			t.Errorf("%q goes to %q, want %q", tool, got, want)
		}
	}
	if got := a.RunExecutor(); got != "any" {
		t.Errorf("runs are bound to %q, want any", got)
	}
	one := config.Agent{Executors: map[string]string{"fs/*": "laptop", "terminal/*": "laptop"}}
	if got := one.RunExecutor(); got != "laptop" {
		t.Errorf("with one executor, runs are bound to %q, want that", got)
	}
	if one.Offers("open") || !one.Offers("terminal/create") || !a.Offers("open") {
		t.Error("what is offered is not what is named")
	}
	two := config.Agent{Executors: map[string]string{"a": "x", "b": "y"}}
	if got := two.RunExecutor(); got != "" {
		t.Errorf("with two executors, runs are bound to %q, want none", got)
	}
}
