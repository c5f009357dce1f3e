package pebble

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// sealed encodes a batch as the committer does.
func sealed(header batchHeader, facts []journal.Fact) []byte {
	body := encodeBody(facts)
	header.count = len(facts)
	head := header.append(nil)
	stored := make([]byte, sealedSize(head, body))
	sealBatch(stored, head, body)
	return stored
}

func wireExample() (batchHeader, []journal.Fact) {
	header := batchHeader{
		sid: 7, firstSequence: 41, firstOffset: 1_000, firstEvent: 1_700_000_000_000_000,
		time: time.UnixMicro(1_772_366_400_000_123).UTC(), firstLogs: []uint64{9, 1},
	}
	copy(header.previous[:], bytes.Repeat([]byte{0xab}, 32))
	return header, []journal.Fact{
		{EventID: "41.aaaaaaaa", Bytes: []byte("one"), RootRunID: "run", RunSequence: 5, EventCount: 2, LogRun: "run", LogCount: 3},
		{EventID: "42.bbbbbbbb", Bytes: []byte("two"), RootRunID: "run", RunSequence: 6, WorkflowID: "flow", WorkflowSequence: 1},
		{EventID: "43.cccccccc", Bytes: []byte("three"), LogRun: "other", LogCount: 1},
		{EventID: "44.dddddddd", Bytes: []byte("four"), RootRunID: "run", RunSequence: 7, EventCount: 1, LogRun: "run", LogCount: 1},
	}
}

func TestBatchRoundTrip(t *testing.T) {
	header, facts := wireExample()
	got, err := decodeBatch(sealed(header, facts))
	if err != nil {
		t.Fatal(err)
	}
	wantLogs := []uint64{9, 0, 1, 12}
	wantEvents := []uint64{1_700_000_000_000_000, 0, 0, 1_700_000_000_000_002}
	for i, fact := range facts {
		want := journal.Record{
			Fact: fact, Sequence: 41 + uint64(i), Offset: 1_000 + uint64(i), Time: header.time,
			FirstLog: wantLogs[i], FirstEvent: wantEvents[i],
		}
		if !reflect.DeepEqual(got.records[i], want) {
			t.Errorf("fact %d:\ngot  %+v\nwant %+v", i, got.records[i], want)
		}
	}
	if got.previous != header.previous || got.sid != 7 || got.events() != 3 {
		t.Errorf("header: got %+v", got.batchHeader)
	}
}

// TestBatchBytes pins format 1: stored bytes are for ever.
func TestBatchBytes(t *testing.T) {
	header, facts := wireExample()
	const want = "010729e8078080f9c0c1c48203f6c1f8daa6fda506" +
		"abababababababababababababababababababababababababababababababab" +
		"02090104" +
		"11086161616161616161" + "0372756e05" + "0372756e03" + "0203" +
		"07086262626262626262" + "06" + "04666c6f7701" + "0003" +
		"10086363636363636363" + "056f7468657201" + "0005" +
		"13086464646464646464" + "07" + "0372756e01" + "0104" +
		"6f6e6574776f7468726565666f7572"
	got := hex.EncodeToString(sealed(header, facts))
	if got[:len(got)-8] != want {
		t.Errorf("stored form of format 1:\ngot  %s\nwant %s and a checksum", got, want)
	}
}

func TestBatchDamage(t *testing.T) {
	stored := sealed(wireExample())
	for i := range stored {
		damaged := bytes.Clone(stored)
		damaged[i] ^= 0x10
		if _, err := decodeBatch(damaged); err == nil {
			t.Errorf("bit flipped in byte %d of %d: no error", i, len(stored))
		}
		if _, err := decodeBatch(stored[:i]); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", i, len(stored))
		}
	}
}

// TestBatchChain shows that the hash depends on every byte but the checksum.
func TestBatchChain(t *testing.T) {
	header, facts := wireExample()
	hashes := map[chainHash]string{}
	note := func(what string, h batchHeader, f []journal.Fact) {
		b, err := decodeBatch(sealed(h, f))
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := hashes[b.hash()]; taken {
			t.Errorf("%s and %s have one hash", what, other)
		}
		hashes[b.hash()] = what
	}
	note("the batch", header, facts)
	changed := header
	changed.previous[0]++
	note("another batch before it", changed, facts)
	changed = header
	changed.firstOffset++
	note("another offset", changed, facts)
	facts[3].Bytes = []byte("FOUR")
	note("another fact", header, facts)
}

func TestGroupRoundTrip(t *testing.T) {
	want := &storedGroup{firstOffset: 12, firstEvent: 99, entries: []groupEntry{{1, 2, 3, 4}, {1 << 40, 1 << 50, 1, 0}}}
	stored := want.encode()
	got, err := decodeGroup(stored)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if offset, event := got.end(); offset != 16 || event != 103 {
		t.Errorf("end: got %d and %d, want 16 and 103", offset, event)
	}
	for i := range stored {
		stored[i] ^= 1
		if _, err := decodeGroup(stored); err == nil {
			t.Errorf("bit flipped in byte %d: no error", i)
		}
		stored[i] ^= 1
	}
}

// FuzzBatch has a decoder that never fails otherwise than by an error, and
// reads nothing that it would not write again. The checksum is put right, so
// that the fuzzer gets behind it.
func FuzzBatch(f *testing.F) {
	stored := sealed(wireExample())
	f.Add(stored[:len(stored)-4])
	f.Add([]byte{batchFormat})
	f.Fuzz(func(t *testing.T, content []byte) {
		_, _ = decodeBatch(content)
		b, err := decodeBatch(withChecksum(content))
		if err != nil {
			return
		}
		if len(b.records) != b.count || b.count > journal.MaxBatchFacts {
			t.Fatalf("%d records, the header says %d", len(b.records), b.count)
		}
		total := 0
		facts := make([]journal.Fact, len(b.records))
		for i, r := range b.records {
			total += len(r.Bytes)
			facts[i] = r.Fact
		}
		if total > len(content) {
			t.Fatalf("%d bytes of facts from %d bytes", total, len(content))
		}
		again, err := decodeBatch(sealed(b.batchHeader, facts))
		if err != nil {
			t.Fatalf("written again it cannot be read: %v", err)
		}
		if fmt.Sprint(again.records) != fmt.Sprint(b.records) {
			t.Fatalf("written again:\ngot  %+v\nwant %+v", again.records, b.records)
		}
	})
}

func withChecksum(content []byte) []byte {
	body := batchBody{}
	stored := make([]byte, sealedSize(content, body))
	sealBatch(stored, content, body)
	return stored
}
