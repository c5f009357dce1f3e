package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// FileName is the configuration file in a home.
const FileName = "config.toml"

const maxFileSize = 256 << 10

// A Config is a valid configuration.
type Config struct {
	// Home is the directory that everything lives in. The file is found by it, so
	// it cannot be set there.
	Home string

	Listen       string
	BehindProxy  bool
	AllowedHosts []string
	CORSOrigins  []string
	TLS          TLS
	Workspaces   Workspaces
	Storage      Storage
	Agents       Agents
	Executors    Executors
	Policy       []Rule
	Harness      Harness
	Narya        Narya
	Queue        Queue
	Sessions     Sessions
	History      History
	Streams      Streams
	Log          Log
}

// TLS names the certificate of the listener: both files or neither.
type TLS struct{ Cert, Key string }

// Workspaces bounds where agents may work.
type Workspaces struct {
	// Roots are absolute; a session's directory lies in one of them. Load never leaves them
	// nil: without any a session can have no directory.
	Roots []string
}

// Storage is about the disk.
type Storage struct {
	Reserve int64 // bytes that are to stay free
	// The largest ones, in bytes.
	MaxAttachment int64
	MaxArtifact   int64
}

// Agents is how agents are run, and which there are.
type Agents struct {
	MaxRunning  int
	CancelGrace time.Duration
	IdleTimeout time.Duration
	Default     string // a name in Named, or empty
	Named       map[string]Agent
}

// Executors is how tools run on other machines.
type Executors struct {
	Lease     time.Duration // without a heartbeat
	Heartbeat time.Duration
	TokenLife time.Duration // of one call
	Absent    string        // Wait or Fail
}

// What a call does whose executor is away.
const (
	Wait = "wait"
	Fail = "fail"
)

// Narya is about the Narya host API.
type Narya struct {
	// TCP serves it on the listener too, with a token, and not on the socket alone.
	TCP bool
	// Retention is how long events can be resumed after.
	Retention time.Duration
	// Styles are what agents are told of how to answer, by the names under which a session
	// chooses them.
	Styles map[string]string
}

// Queue bounds the messages that wait in a session.
type Queue struct{ Max int }

// Sessions bounds what a session holds in memory.
type Sessions struct {
	Mailbox int // commands that wait for its actor
}

// History bounds pages of history.
type History struct {
	Page int // events
}

// Streams is about event streams.
type Streams struct {
	WriteTimeout    time.Duration
	MaxLag          int // events
	Heartbeat       time.Duration
	Max             int // of the host
	MaxPerPrincipal int
}

// Log is how the host logs.
type Log struct{ Level, Format string }

// An Override is a setting given on the command line.
type Override struct {
	Key    string // as in the file, "streams.heartbeat"
	Value  string
	Source string // what to call it in errors, "--heartbeat"
}

// Load reads the configuration of a home, which must be absolute: an empty one
// means DefaultHome. A home without a file has the defaults. The error is a join
// of every Error that was found.
func Load(home string, env func(string) string, overrides ...Override) (Config, error) {
	if home == "" {
		var err error
		if home, err = DefaultHome(env); err != nil {
			return Config{}, err
		}
	}
	if !filepath.IsAbs(home) {
		return Config{}, fmt.Errorf("home %q: must be an absolute path", home)
	}
	l := &loader{env: env, config: Config{Home: filepath.Clean(home)}, sources: make(map[string]string)}
	l.settings = settingsOf(&l.config)
	l.defaults()
	if err := l.file(filepath.Join(l.config.Home, FileName)); err != nil {
		return Config{}, err
	}
	l.environment()
	l.overrides(overrides)
	l.paths()
	l.relations()
	if len(l.errs) > 0 {
		return Config{}, errors.Join(l.errs...)
	}
	return l.config, nil
}

// DefaultHome is MAHATI_HOME, else "mahati" in the XDG state directory.
func DefaultHome(env func(string) string) (string, error) {
	if home := env("MAHATI_HOME"); home != "" {
		return filepath.Abs(home)
	}
	// The XDG specification has relative directories ignored.
	if state := env("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "mahati"), nil
	}
	if user := env("HOME"); filepath.IsAbs(user) {
		return filepath.Join(user, ".local", "state", "mahati"), nil
	}
	return "", errors.New("no home: neither MAHATI_HOME, XDG_STATE_HOME nor HOME is set to a directory")
}

// A loader builds a Config and collects what is wrong.
type loader struct {
	env      func(string) string
	config   Config
	settings []setting
	sources  map[string]string // where the value of a key comes from
	errs     []error
}

// An Error is one thing that is wrong with a configuration.
type Error struct {
	Source string // "/home/x/config.toml:12", "MAHATI_LISTEN", "--listen", or "default"
	Key    string
	Value  string // as it was given; empty where there is none to show
	Rule   string // what holds for the key
}

// Error is one line.
func (e *Error) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s: %s", e.Source, e.Key, e.Rule)
	}
	return fmt.Sprintf("%s: %s = %s: %s", e.Source, e.Key, e.Value, e.Rule)
}

func (l *loader) fail(source, key, value, rule string) {
	l.errs = append(l.errs, &Error{Source: source, Key: key, Value: shorten(value), Rule: rule})
}

func shorten(value string) string {
	const most = 120
	if len(value) <= most {
		return value
	}
	return value[:most] + "..."
}

func (l *loader) defaults() {
	for _, s := range l.settings {
		s.value.reset()
		l.sources[s.key] = "default"
	}
}

// file reads the file, if there is one.
func (l *loader) file(path string) error {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	doc, err := parseDocument(path, data)
	if err != nil {
		return err
	}
	l.document(doc)
	return nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFileSize)
	}
	return data, nil
}

func (l *loader) environment() {
	for _, s := range l.settings {
		name := s.variable()
		if text := l.env(name); text != "" {
			l.text(s, name, text)
		}
	}
}

func (l *loader) overrides(overrides []Override) {
	for _, o := range overrides {
		s, ok := l.find(o.Key)
		if !ok {
			l.fail(o.Source, o.Key, "", "there is no such setting")
			continue
		}
		l.text(s, o.Source, o.Value)
	}
}

func (l *loader) text(s setting, source, text string) {
	if err := s.value.setText(text); err != nil {
		l.fail(source, s.key, fmt.Sprintf("%q", text), err.Error())
		return
	}
	l.sources[s.key] = source
}

func (l *loader) find(key string) (setting, bool) {
	for _, s := range l.settings {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}
