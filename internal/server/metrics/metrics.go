package metrics

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server"
)

// Metrics is what a host measures of itself. [New] makes one.
type Metrics struct {
	registry *prometheus.Registry
	append   prometheus.Histogram
	commit   prometheus.Histogram
	group    prometheus.Histogram
	recovery prometheus.Gauge
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	ended    *prometheus.CounterVec
}

// seconds are the buckets of durations: from a commit to memory to a client that waits
// for a disk in trouble.
var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// batches are the buckets of group sizes, up to the largest there is.
var batches = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}

// New returns the metrics of a program of that version, without sources.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		append: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mahati_journal_append_seconds", Buckets: seconds,
			Help: "Time from handing a batch to the journal until it was durable or refused.",
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mahati_journal_commit_seconds", Buckets: seconds,
			Help: "Time to write, sync and publish one commit group.",
		}),
		group: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mahati_journal_group_batches", Buckets: batches,
			Help: "Batches in one commit group.",
		}),
		recovery: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mahati_host_recovery_seconds",
			Help: "Time that the last start took to repair what was left open.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mahati_http_requests_total",
			Help: "Requests that have ended, by the route that matched and the status of the answer.",
		}, []string{"route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mahati_http_request_seconds", Buckets: seconds,
			Help: "Time to answer a request, event streams left out.",
		}, []string{"route"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mahati_streams_ended_total",
			Help: "Event streams that have ended, by their route and why: left, or the host's reason.",
		}, []string{"route", "why"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mahati_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	m.registry.MustRegister(
		m.append, m.commit, m.group, m.recovery, m.requests, m.duration, m.ended, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers with every figure. It authorises nobody.
func (m *Metrics) Handler() http.Handler {
	// Some figures are better than none.
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// ObserveGroup notes a commit group. It is for journal.Options.Observe.
func (m *Metrics) ObserveGroup(g journal.Group) {
	m.commit.Observe(g.Took.Seconds())
	m.group.Observe(float64(g.Batches))
}

// ObserveRecovery notes how long a start took.
func (m *Metrics) ObserveRecovery(took time.Duration) { m.recovery.Set(took.Seconds()) }

// ObserveExchange notes a request. It is for server.Options.Observe.
func (m *Metrics) ObserveExchange(e server.Exchange) {
	route := e.Route
	if route == "" {
		route = "none"
	}
	code := "cut"
	if e.Status != 0 {
		code = strconv.Itoa(e.Status)
	}
	m.requests.WithLabelValues(route, code).Inc()
	if e.Streamed {
		m.ended.WithLabelValues(route, cmp.Or(e.Ended, "left")).Inc()
		return
	}
	m.duration.WithLabelValues(route).Observe(e.Took.Seconds())
}
