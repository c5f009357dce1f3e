package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server"
)

// Sources are the parts of a host that count for themselves. All are needed.
type Sources struct {
	Journal journal.Keeper
	Feed    *feed.Feed
	Host    *host.Host
	Server  *server.Server
}

// Watch has each scrape read the sources. It is called once.
func (m *Metrics) Watch(s Sources) { m.registry.MustRegister(collector{s}) }

// lagTime bounds how long a scrape looks for readers that are behind.
const lagTime = 2 * time.Second

// reading is what the sources said at one scrape.
type reading struct {
	stats  journal.Stats
	space  journal.Space
	broken bool
	feed   feed.Stats
	lag    feed.Lag
	host   host.Stats
	events host.EventRange
	edge   server.Counters
}

func (s Sources) read() *reading {
	ctx, cancel := context.WithTimeout(context.Background(), lagTime)
	defer cancel()
	return &reading{
		stats: s.Journal.Stats(), space: s.Journal.Space(), broken: s.Journal.Err() != nil,
		feed: s.Feed.Stats(), lag: s.Feed.Lag(ctx), host: s.Host.Stats(), events: s.Host.Events(), edge: s.Server.Counters(),
	}
}

// figure is one metric that a scrape reads.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*reading) float64
}

func counter(name, help string, value func(*reading) float64) figure {
	return figure{prometheus.NewDesc("mahati_"+name+"_total", help, nil, nil), prometheus.CounterValue, value}
}

func gauge(name, help string, value func(*reading) float64) figure {
	return figure{prometheus.NewDesc("mahati_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

var figures = []figure{
	counter("journal_batches", "Batches that were committed.", func(r *reading) float64 { return float64(r.stats.Batches) }),
	counter("journal_facts", "Facts that were committed.", func(r *reading) float64 { return float64(r.stats.Facts) }),
	counter("journal_bytes", "Bytes of the facts that were committed.", func(r *reading) float64 { return float64(r.stats.Bytes) }),
	counter("journal_refused_batches", "Batches that were refused, with nothing written.", func(r *reading) float64 { return float64(r.stats.Refused) }),
	gauge("journal_queue_batches", "Batches that wait for a commit group.", func(r *reading) float64 { return float64(r.stats.Waiting) }),
	gauge("journal_broken", "1 after a write failed: nothing is written any more.", func(r *reading) float64 { return truth(r.broken) }),
	gauge("storage_free_bytes", "Free space where the store is, as last looked at.", func(r *reading) float64 { return float64(r.space.Free) }),
	gauge("storage_reserve_bytes", "Free space below which new work is refused.", func(r *reading) float64 { return float64(r.space.Reserve) }),

	gauge("feed_subscribers", "Readers that follow something.", func(r *reading) float64 { return float64(r.feed.Subscriptions) }),
	gauge("feed_topics", "Different things that are followed.", func(r *reading) float64 { return float64(r.feed.Topics) }),
	gauge("feed_subscribers_behind", "Readers that have not got everything yet.", func(r *reading) float64 { return float64(r.lag.Behind) }),
	gauge("feed_lag_facts", "Facts that all readers together have not got yet.", func(r *reading) float64 { return float64(r.lag.Sum) }),
	gauge("feed_lag_max_facts", "Facts that the last of the readers has not got yet.", func(r *reading) float64 { return float64(r.lag.Max) }),
	gauge("feed_ring_bytes", "Memory of the ends of sessions that are followed.", func(r *reading) float64 { return float64(r.feed.RingBytes) }),
	counter("feed_reads", "Pages that readers took from the store and not from memory.", func(r *reading) float64 { return float64(r.feed.Reads) }),

	gauge("host_sessions_loaded", "Sessions with an owner in memory.", func(r *reading) float64 { return float64(r.host.Loaded) }),
	gauge("host_queue_commands", "Commands that wait for the owner of their session.", func(r *reading) float64 { return float64(r.host.Mailbox) }),
	gauge("host_oldest_event", "Number of the oldest event of the host that is kept.", func(r *reading) float64 { return float64(r.events.Oldest) }),
	gauge("host_newest_event", "Number of the newest event of the host.", func(r *reading) float64 { return float64(r.events.Newest) }),
	gauge("agents_running", "Agents that work.", func(r *reading) float64 { return float64(r.host.Running) }),
	gauge("agents_limit", "Agents that may work at the same time.", func(r *reading) float64 { return float64(r.host.Places) }),
	gauge("agents_queue_sessions", "Sessions that wait until an agent may work.", func(r *reading) float64 { return float64(r.host.Waiting) }),

	counter("http_unauthenticated", "Requests without a valid token or cookie.", func(r *reading) float64 { return float64(r.edge.Unauthenticated) }),
	counter("http_foreign", "Requests refused for their Host or Origin.", func(r *reading) float64 { return float64(r.edge.Foreign) }),
	counter("http_panics", "Handlers that panicked.", func(r *reading) float64 { return float64(r.edge.Panics) }),
	gauge("streams_open", "Event streams that are open.", func(r *reading) float64 { return float64(r.edge.Streams.Open) }),
	counter("streams_opened", "Event streams that were opened.", func(r *reading) float64 { return float64(r.edge.Streams.Opened) }),
	counter("streams_refused", "Event streams refused for the bounds on their number.", func(r *reading) float64 { return float64(r.edge.Streams.Refused) }),
	counter("streams_stalled", "Event streams ended because nothing was taken, or the client had left.", func(r *reading) float64 { return float64(r.edge.Streams.Stalled) }),
	counter("streams_revoked", "Event streams ended because the token behind them had.", func(r *reading) float64 { return float64(r.edge.Streams.Revoked) }),
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collector gives the figures of its sources.
type collector struct{ sources Sources }

// Describe implements prometheus.Collector.
func (collector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range figures {
		descs <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	r := c.sources.read()
	for _, f := range figures {
		metrics <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(r))
	}
}
