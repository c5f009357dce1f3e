// Package narya holds the Narya host API, version 1: the events of its one stream, its
// error envelope, and the projection that makes these events of Mahati's facts.
//
// # What it promises
//
// Each of the 33 event types has one Go type for its payload, whose fields are listed
// once: what [Decode] reads is what [Encode] writes, under the same rules. Fields that
// the contract does not name are ignored, as it demands; values of free form keep their
// bytes. A refusal is an [*Invalid] with a code, the field and the rule, and holds no
// value of the input.
//
// [Mapping.Project] says which events a fact causes (R39, R41, R42). Each answer is a
// function of the fact alone: what it needs beyond Narad's own fields stands in the fact
// (R1), so that an event can be made again at any time from one stored fact, with the
// same bytes. [Mapping.Count] is the number of them.
//
// # Invariants
//
// An event that Project returns is valid, whatever the fact says: Encode takes it as soon
// as it has its number. A UUID that stands for another id (R5) never changes. The codes
// of [Catalogue] keep their meaning for ever.
//
// # Concurrency
//
// Functions keep no state. Values are safe for concurrent reading.
//
// # What it is not
//
// It serves nothing: no operation, stream or socket is here. It numbers no event: that is
// the journal's (R39).
package narya
