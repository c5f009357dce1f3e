package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/cli"
)

// This program is started again for what is to run in a process of its own; the
// variable says as what.
const (
	roleVariable = "MAHATI_BENCH_ROLE"
	roleHost     = "host"  // mahati
	roleStage    = "stage" // a host whose journal can be told facts
	rolePlain    = "plain" // what a host is compared with

	// profileVariable names the directory for processor profiles of hosts, if any.
	profileVariable = "MAHATI_BENCH_PROFILE"
)

// profile writes a processor profile of this process into a directory until what it
// returns is called.
func profile(dir string) (end func()) {
	if dir == "" {
		return func() {}
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("host-%d.prof", os.Getpid())))
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		return func() {}
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }
}

// playRole plays the role that this process was started for; false if there is none.
func playRole() (code int, played bool) {
	switch os.Getenv(roleVariable) {
	case roleHost:
		defer profile(os.Getenv(profileVariable))()
		return cli.Main(os.Args[1:], cli.Process{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: "bench",
		}), true
	case roleStage:
		defer profile(os.Getenv(profileVariable))()
		return exitCode(serveStage(os.Args[1])), true
	case rolePlain:
		return exitCode(servePlain()), true
	}
	return 0, false
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a server that this one started. It ends when its standard input does, so
// also with this process.
type process struct {
	url     string
	started time.Duration // from the start of the process to the word that it serves
	cmd     *exec.Cmd
	life    io.Closer
	log     *bytes.Buffer
}

// start starts this program in a role, and returns when it serves.
func start(role string, args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{cmd: exec.Command(program, args...), log: &bytes.Buffer{}}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	p.cmd.Stderr = p.log
	if p.life, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	var ready struct{ URL string }
	text, err := bufio.NewReader(out).ReadBytes('\n')
	p.started = time.Since(begun)
	if err == nil {
		err = json.Unmarshal(text, &ready)
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("start %s: %w: %s", role, err, tail(p.log.String()))
	}
	p.url = ready.URL
	return p, nil
}

// startHost starts a host on a home.
func startHost(home string) (*process, error) {
	return start(roleHost, "serve", "--home", home, "--listen", "127.0.0.1:0", "--json", "--with-parent")
}

func tail(log string) string {
	const most = 2_000
	return log[max(0, len(log)-most):]
}

// stop ends the process in order, and waits for it.
func (p *process) stop() error {
	if err := p.life.Close(); err != nil {
		return fmt.Errorf("end %s: %w", p.url, err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s ended: %w: %s", p.url, err, tail(p.log.String()))
	}
	return nil
}

// kill ends the process with kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// resident is the resident memory of the process in bytes, and the most it ever was.
func (p *process) resident() (now, most int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("the memory of a process is known on Linux alone: %w", err)
	}
	return kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:"), nil
}

// processor is the processor time that the process has used; 0 where it is not known.
func (p *process) processor() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	const user, system, tick = 11, 12, 10 * time.Millisecond // fields behind the name
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var sum time.Duration
	for _, i := range []int{user, system} {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		sum += time.Duration(n) * tick
	}
	return sum
}

func kilobytes(status []byte, name string) int64 {
	for text := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(text, name); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

// bench is what the sections share.
type bench struct {
	ctx   context.Context
	time  time.Duration // how long one figure is measured
	home  string        // of the host, which has the seeded store
	seed  seed
	plain *process
	host  *process // nil while none runs
	token string
}

// serve starts the host if it does not run.
func (b *bench) serve() error {
	if b.host != nil {
		return nil
	}
	var err error
	if b.host, err = startHost(b.home); err != nil {
		return err
	}
	return b.learnToken()
}

// learnToken reads the token of the home, which the first host made.
func (b *bench) learnToken() error {
	secret, err := access.ReadFirst(b.home)
	b.token = secret.Reveal()
	return err
}

// restart ends the host in order and starts it again.
func (b *bench) restart() error {
	if err := b.stop(); err != nil {
		return err
	}
	return b.serve()
}

func (b *bench) stop() error {
	if b.host == nil {
		return nil
	}
	host := b.host
	b.host = nil
	return host.stop()
}

func (b *bench) close() error {
	err := b.stop()
	if b.plain != nil {
		err = errors.Join(err, b.plain.stop())
	}
	return err
}

// configure writes the host's configuration and the scripts that it names.
func configure(home string, each time.Duration) error {
	config := "[streams]\nmax = 20000\nmax_per_principal = 20000\n[agents]\nmax_running = 128\ndefault = \"quiet\"\n"
	for name, steps := range scripts(each) {
		file := filepath.Join(home, name+".yaml")
		if err := os.WriteFile(file, []byte("script: 1\nsteps:\n"+steps), 0o600); err != nil {
			return err
		}
		config += fmt.Sprintf("[agents.%s]\nkind = \"script\"\nfile = %q\n", name, file)
	}
	return os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600)
}

// scripts are the agents of the bench. Their facts have about 420 bytes.
func scripts(each time.Duration) map[string]string {
	const pause = 20 * time.Millisecond // fifty facts a second
	return map[string]string{
		"quiet":   "  - delay: 1ms\n",
		"torrent": strings.Repeat(repeat(10_000, 0), 5),     // until it is stopped
		"steady":  strings.Repeat(repeat(10_000, pause), 5), // until it is stopped
		"caller":  strings.Repeat(calls(10_000), 5),         // until it is stopped
		"worker":  repeat(workerFacts(each), pause),
	}
}

// workerFacts is how many facts a worker records.
func workerFacts(each time.Duration) int { return min(int(each/(20*time.Millisecond)), 10_000) }

// calls are calls of an executor's tool.
func calls(times int) string {
	return fmt.Sprintf("  - repeat: {times: %d, steps: [{client: {name: echo, args: {text: %q}}}]}\n", times, strings.Repeat("x", 90))
}

func repeat(times int, pause time.Duration) string {
	return fmt.Sprintf("  - repeat: {times: %d, steps: [{delay: %s}, {custom: {name: bench.fact, value: {text: %q}}}]}\n",
		times, pause, strings.Repeat("x", 90))
}
