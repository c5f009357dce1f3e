// Package narad holds the wire types of the Narad protocol, version narad/v1.
//
// # What it promises
//
// Every record of the protocol has a Go type: the authority events of the core
// and of all twelve profiles, the watch events, the hydrate records and the
// control messages. [Decode] reads one record strictly as JSON (UTF-8, no
// repeated names, bounded size and depth) and leniently as a protocol record:
// it takes what a careful client can take. [DecodeStrict] takes only what a host
// may emit, and [Encode] writes only that; [Schema] says the same as a JSON Schema. One
// list of fields per type serves all of them, so they cannot drift apart.
//
// Values whose form belongs to somebody else (tool arguments, responses, input,
// state, extension values) are [Raw]: their bytes come out as they went in.
// Fields that this package does not know are kept as [Event.Extra].
//
// # Invariants
//
// A record that Decode returned has every required field of its type. A record
// that Encode accepted satisfies the specification, its published schemas (but
// for the closed list of R19) and the limits of [MaxEventBytes] and [MaxDepth].
// Each refusal is an [*Error] with a code, the path of the field and the rule.
//
// # Concurrency
//
// Functions keep no state, and a [Reader] belongs to one goroutine. A record is a
// value of its owner: nothing here locks, starts goroutines, reads a clock or draws
// random numbers.
//
// # What it is not
//
// It judges one record at a time. Whether a record may follow the ones before it
// is the business of package narad/session.
package narad
