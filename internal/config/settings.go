package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// minReserve is what the host needs to close what is open when the disk is full.
const minReserve = 64 << 20

// settingsOf is the table of all settings, in the order of the file.
func settingsOf(c *Config) []setting {
	return []setting{
		{"listen", `Address and port of the HTTP listener. Port 0 takes any that is free. An address
beyond this machine needs tls or behind_proxy.`,
			text(&c.Listen, "127.0.0.1:7717", checkListen)},
		{"behind_proxy", `A proxy in front of the host ends TLS. Set it only where nothing but the proxy can
reach the listener.`,
			boolean{&c.BehindProxy, false}},
		{"allowed_hosts", `Names by which this host is called in URLs, besides those of loopback: "name" or
"name:port". Requests to another name are refused, which stops DNS rebinding.`,
			list{&c.AllowedHosts, nil, checkHost}},
		{"cors_origins", `Origins whose pages may use this host from a browser, such as
"https://app.example".`,
			list{&c.CORSOrigins, nil, checkOrigin}},

		{"tls.cert", `Certificate chain in PEM. Paths that are not absolute are relative to the home.`,
			text(&c.TLS.Cert, "", nil)},
		{"tls.key", `Its private key in PEM.`,
			text(&c.TLS.Key, "", nil)},

		{"workspaces.roots", `The working directory of a session lies in one of these. "~" is your home
directory. With none a session can have no directory.`,
			list{&c.Workspaces.Roots, []string{"~"}, checkRoot}},

		{"storage.reserve", `What is to stay free on the disk. Below it new work is refused, while reading and
finishing go on. B, KiB, MiB, GiB, TiB; at least 64MiB.`,
			size(&c.Storage.Reserve, 1<<30, minReserve)},
		{"storage.max_attachment", `The largest file that may come with a message.`,
			size(&c.Storage.MaxAttachment, 32<<20, 1<<10)},
		{"storage.max_artifact", `The largest output of an agent that is kept.`,
			size(&c.Storage.MaxArtifact, 256<<20, 1<<20)},

		{"agents.max_running", `Runs that work at the same time, without those that wait for a person or for another session. More are accepted and wait.`,
			number{&c.Agents.MaxRunning, 8, 1, 1024}},
		{"agents.cancel_grace", `How long an agent may take to end after a stop before it is killed.`,
			duration(&c.Agents.CancelGrace, 10*time.Second, 100*time.Millisecond, 10*time.Minute)},
		{"agents.idle_timeout", `How long an agent's process is kept without work.`,
			duration(&c.Agents.IdleTimeout, 10*time.Minute, time.Second, 24*time.Hour)},
		{"agents.default", `The agent of sessions that name none: the NAME of an [agents.NAME] below.`,
			text(&c.Agents.Default, "", nil)},

		{"executors.lease", `How long an executor, which runs tools on its own machine, counts as attached without a
heartbeat.`,
			duration(&c.Executors.Lease, time.Minute, time.Second, time.Hour)},
		{"executors.heartbeat", `How often an executor is to say that it is there; at most half of the lease.`,
			duration(&c.Executors.Heartbeat, 15*time.Second, 100*time.Millisecond, time.Hour)},
		{"executors.token_life", `How long one call may take, and may wait for its executor.`,
			duration(&c.Executors.TokenLife, 5*time.Minute, time.Second, 7*24*time.Hour)},
		{"executors.absent", `What a call does whose executor is away: "wait", with the run paused, or "fail".`,
			choice(&c.Executors.Absent, Wait, Wait, Fail)},

		{"narya.tcp", `Serve the Narya host API over TCP too, with a token, and not on the home's socket alone.`,
			boolean{&c.Narya.TCP, false}},
		{"narya.retention", `How long a stream of the Narya host API can be resumed after an event.`,
			duration(&c.Narya.Retention, 7*24*time.Hour, time.Minute, 3650*24*time.Hour)},

		{"queue.max", `Messages that may wait in a session.`,
			number{&c.Queue.Max, 100, 1, 10_000}},
		{"sessions.mailbox", `Commands that may wait for a session. More are answered 503.`,
			number{&c.Sessions.Mailbox, 64, 1, 65_536}},
		{"history.page", `Events in the largest page of history.`,
			number{&c.History.Page, 1000, 1, 1000}},

		{"streams.write_timeout", `How long a reader may take nothing of what is sent to it before it is cut off.`,
			duration(&c.Streams.WriteTimeout, 30*time.Second, time.Second, time.Hour)},
		{"streams.max_lag", `Events that a reader may be behind once its writes stall.`,
			number{&c.Streams.MaxLag, 65_536, 1, 1 << 30}},
		{"streams.heartbeat", `The longest silence on a stream. Shorter than the idle limits of proxies on the
way.`,
			duration(&c.Streams.Heartbeat, 15*time.Second, time.Second, 10*time.Minute)},
		{"streams.max", `Streams that may be open.`,
			number{&c.Streams.Max, 4096, 1, 1 << 20}},
		{"streams.max_per_principal", `Streams that may be open with one token.`,
			number{&c.Streams.MaxPerPrincipal, 256, 1, 1 << 20}},

		{"log.level", `debug, info, warn or error.`,
			choice(&c.Log.Level, "info", "debug", "info", "warn", "error")},
		{"log.format", `text or json.`,
			choice(&c.Log.Format, "text", "text", "json")},
	}
}

func checkListen(s string) error {
	rule := errors.New(`must be HOST:PORT, such as "127.0.0.1:7717"`)
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, " /@") {
		return rule
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return rule
	}
	return nil
}

// Loopback says whether a listen address is reachable from this machine alone.
// A name other than localhost may stand for any address.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func checkHost(s string) error {
	if s == "" || strings.ContainsAny(s, "/@* \t") {
		return errors.New(`must be "name" or "name:port"`)
	}
	return nil
}

func checkOrigin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || s != u.Scheme+"://"+u.Host {
		return errors.New(`must be http(s)://host or http(s)://host:port`)
	}
	return nil
}

func checkRoot(s string) error {
	if strings.HasPrefix(s, "/") || s == "~" || strings.HasPrefix(s, "~/") {
		return nil
	}
	return errors.New(`must be an absolute path or begin with "~/"`)
}
