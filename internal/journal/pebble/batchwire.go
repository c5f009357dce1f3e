package pebble

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// A stored batch is header, body, CRC32C of both. The header has what is known
// only in the commit (numbers, the hash of the batch before); the body, which
// is most of it, is encoded and hashed by the goroutine that appends. The
// chain hash of a batch is SHA-256 of its header and of its body's SHA-256, so
// that the committer hashes a hundred bytes and no more.

const batchFormat = 1

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errTruncated = errors.New("ends too early")
	errChecksum  = errors.New("checksum does not fit")
	errRange     = errors.New("number out of range")
)

// chainHash is the hash of a batch, or zero before the first of a session.
type chainHash [sha256.Size]byte

// batchHeader is the fixed part of a stored batch.
type batchHeader struct {
	sid           uint64
	firstSequence uint64
	firstOffset   uint64
	// firstEvent is the event number that the first event of the batch has, or
	// would have.
	firstEvent uint64
	time       time.Time
	previous   chainHash
	// firstLogs are the first log numbers of the logs of the batch, in the order
	// in which its facts name them first.
	firstLogs []uint64
	count     int
}

// batchBody is an encoded body.
type batchBody struct {
	bytes  []byte
	digest [sha256.Size]byte
}

// What a fact says of its run, workflow and log. "Same" is the same as that of
// the fact before it which had one.
const (
	hasRun = 1 << iota
	sameRun
	hasWorkflow
	sameWorkflow
	hasLog
	sameLog

	allFlags = 1<<iota - 1
)

// encodeBody encodes the facts of a batch.
func encodeBody(facts []journal.Fact) batchBody {
	size := 0
	for i := range facts {
		size += len(facts[i].Bytes) + 96
	}
	buf := make([]byte, 0, size)
	var run, workflow, log string
	for i := range facts {
		f := &facts[i]
		var flags byte
		flags |= flagsOf(f.RootRunID, &run, hasRun, sameRun)
		flags |= flagsOf(f.WorkflowID, &workflow, hasWorkflow, sameWorkflow)
		flags |= flagsOf(f.LogRun, &log, hasLog, sameLog)
		buf = append(buf, flags)
		_, suffix, _ := strings.Cut(f.EventID, ".")
		buf = appendText(buf, suffix)
		buf = appendPlace(buf, flags, hasRun, sameRun, f.RootRunID, f.RunSequence)
		buf = appendPlace(buf, flags, hasWorkflow, sameWorkflow, f.WorkflowID, f.WorkflowSequence)
		buf = appendPlace(buf, flags, hasLog, sameLog, f.LogRun, uint64(f.LogCount))
		buf = binary.AppendUvarint(buf, uint64(f.EventCount))
		buf = binary.AppendUvarint(buf, uint64(len(f.Bytes)))
	}
	for i := range facts {
		buf = append(buf, facts[i].Bytes...)
	}
	return batchBody{bytes: buf, digest: sha256.Sum256(buf)}
}

func flagsOf(id string, last *string, has, same byte) byte {
	switch id {
	case "":
		return 0
	case *last:
		return has | same
	}
	*last = id
	return has
}

func appendPlace(buf []byte, flags, has, same byte, id string, number uint64) []byte {
	if flags&has == 0 {
		return buf
	}
	if flags&same == 0 {
		buf = appendText(buf, id)
	}
	return binary.AppendUvarint(buf, number)
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// append encodes the header.
func (h *batchHeader) append(buf []byte) []byte {
	buf = append(buf, batchFormat)
	buf = binary.AppendUvarint(buf, h.sid)
	buf = binary.AppendUvarint(buf, h.firstSequence)
	buf = binary.AppendUvarint(buf, h.firstOffset)
	buf = binary.AppendUvarint(buf, h.firstEvent)
	buf = binary.AppendVarint(buf, h.time.UnixMicro())
	buf = append(buf, h.previous[:]...)
	buf = binary.AppendUvarint(buf, uint64(len(h.firstLogs)))
	for _, first := range h.firstLogs {
		buf = binary.AppendUvarint(buf, first)
	}
	return binary.AppendUvarint(buf, uint64(h.count))
}

// hashBatch is the chain hash of a batch.
func hashBatch(header []byte, digest [sha256.Size]byte) chainHash {
	sum := sha256.New()
	sum.Write(header)
	sum.Write(digest[:])
	return chainHash(sum.Sum(nil))
}

// sealBatch writes header, body and checksum into dst, which has exactly their
// size.
func sealBatch(dst, header []byte, body batchBody) {
	n := copy(dst, header)
	n += copy(dst[n:], body.bytes)
	binary.LittleEndian.PutUint32(dst[n:], crc32.Checksum(dst[:n], castagnoli))
}

func sealedSize(header []byte, body batchBody) int { return len(header) + len(body.bytes) + crc32.Size }

// storedBatch is a batch as read. The bytes of its records belong to the input. One that
// is read into again keeps its arrays, and the ids that the next batch names, too.
type storedBatch struct {
	batchHeader
	records []journal.Record
	raw     struct{ header, body []byte }

	lengths            []int
	logs               logNumbers
	run, workflow, log string
	eventIDs           []byte
}

// last is the sequence of the last fact.
func (h *batchHeader) last() uint64 { return h.firstSequence + uint64(h.count) - 1 }

// events is how many event numbers the batch has.
func (b *storedBatch) events() uint64 {
	var n uint64
	for i := range b.records {
		n += uint64(b.records[i].EventCount)
	}
	return n
}

// hash is the chain hash of the batch.
func (b *storedBatch) hash() chainHash { return hashBatch(b.raw.header, sha256.Sum256(b.raw.body)) }

// decodeBatch reads a stored batch: checksum first, and then nothing that the
// length of the input does not cover.
func decodeBatch(stored []byte) (*storedBatch, error) {
	b := &storedBatch{}
	return b, b.decode(stored)
}

func (b *storedBatch) decode(stored []byte) error {
	body, err := b.batchHeader.decode(stored)
	if err != nil {
		return err
	}
	d := &decoder{buf: body}
	b.raw.header, b.raw.body = stored[:len(stored)-crc32.Size-len(body)], body
	d.records(b)
	if d.err != nil {
		return fmt.Errorf("batch body: %w", d.err)
	}
	return nil
}

// decode reads the header of a stored batch whose checksum fits, and gives its body.
func (h *batchHeader) decode(stored []byte) (body []byte, err error) {
	if len(stored) < crc32.Size+1 {
		return nil, errTruncated
	}
	content, sum := stored[:len(stored)-crc32.Size], stored[len(stored)-crc32.Size:]
	if crc32.Checksum(content, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, errChecksum
	}
	d := &decoder{buf: content}
	d.header(h)
	if d.err != nil {
		return nil, fmt.Errorf("batch header: %w", d.err)
	}
	return d.buf, nil
}

// decoder takes fields from buf until an error.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.buf)
	if size <= 0 {
		d.fail(errTruncated)
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

// bounded is a number of at most limit.
func (d *decoder) bounded(limit int) int {
	n := d.number()
	if n > uint64(limit) {
		d.fail(errRange)
		return 0
	}
	return int(n)
}

func (d *decoder) take(n int) []byte {
	if n > len(d.buf) {
		d.fail(errTruncated)
		return nil
	}
	taken := d.buf[:n:n]
	d.buf = d.buf[n:]
	return taken
}

func (d *decoder) text() string { return string(d.take(d.bounded(len(d.buf)))) }

func (d *decoder) header(h *batchHeader) {
	if format := d.take(1); d.err == nil && format[0] != batchFormat {
		d.fail(fmt.Errorf("format %d, known is %d", format[0], batchFormat))
	}
	h.sid = d.number()
	h.firstSequence = d.number()
	h.firstOffset = d.number()
	h.firstEvent = d.number()
	micros, size := binary.Varint(d.buf)
	if size <= 0 {
		d.fail(errTruncated)
		return
	}
	d.buf = d.buf[size:]
	h.time = time.UnixMicro(micros).UTC()
	copy(h.previous[:], d.take(len(h.previous)))
	h.firstLogs = h.firstLogs[:0]
	for range d.bounded(min(journal.MaxBatchFacts, len(d.buf))) {
		h.firstLogs = append(h.firstLogs, d.number())
	}
	h.count = d.bounded(min(journal.MaxBatchFacts, len(d.buf)))
	if d.err == nil && (h.count == 0 || h.firstSequence == 0 || h.firstOffset == 0) {
		d.fail(errRange)
	}
}

func (d *decoder) records(b *storedBatch) {
	b.records = append(b.records[:0], make([]journal.Record, b.count)...)
	b.lengths, b.eventIDs = b.lengths[:0], b.eventIDs[:0]
	b.logs.begin(b.firstLogs)
	event := b.firstEvent
	var run, workflow, log string
	for i := range b.records {
		r := &b.records[i]
		r.Sequence, r.Offset, r.Time = b.firstSequence+uint64(i), b.firstOffset+uint64(i), b.time
		flags := d.take(1)
		if d.err != nil || flags[0] > allFlags {
			d.fail(errRange)
			return
		}
		b.eventIDs = append(append(strconv.AppendUint(b.eventIDs, r.Sequence, 10), '.'), d.id()...)
		r.RootRunID, r.RunSequence = d.place(flags[0], hasRun, sameRun, &run, &b.run)
		r.WorkflowID, r.WorkflowSequence = d.place(flags[0], hasWorkflow, sameWorkflow, &workflow, &b.workflow)
		var count uint64
		r.LogRun, count = d.place(flags[0], hasLog, sameLog, &log, &b.log)
		if count > journal.MaxEventCount {
			d.fail(errRange)
		}
		r.LogCount = uint32(count)
		r.EventCount = uint32(d.bounded(journal.MaxEventCount))
		b.lengths = append(b.lengths, len(b.eventIDs), d.bounded(len(d.buf)))
		if r.EventCount > 0 {
			r.FirstEvent = event
			event += uint64(r.EventCount)
		}
		if r.LogCount > 0 {
			first, ok := b.logs.take(r.LogRun, uint64(r.LogCount))
			if !ok {
				d.fail(errRange)
			}
			r.FirstLog = first
		}
	}
	d.cut(b)
}

// cut gives the records their event ids, which are one text for all, and their bytes.
func (d *decoder) cut(b *storedBatch) {
	ids, from := string(b.eventIDs), 0
	for i := range b.records {
		to, length := b.lengths[2*i], b.lengths[2*i+1]
		b.records[i].EventID, from = ids[from:to], to
		b.records[i].Bytes = d.take(length)
	}
	if d.err == nil && len(d.buf) > 0 {
		d.fail(fmt.Errorf("%d bytes too many", len(d.buf)))
	}
}

// place reads an id and a number, which are both there or both not. last is the id
// before in the batch, known the one that was read last at all.
func (d *decoder) place(flags, has, same byte, last, known *string) (string, uint64) {
	if flags&has == 0 {
		return "", 0
	}
	if flags&same == 0 {
		if id := d.id(); string(id) != *known {
			*known = string(id)
		}
		*last = *known
	}
	number := d.number()
	if *last == "" || number == 0 {
		d.fail(errRange)
	}
	return *last, number
}

// id is a text that is not empty.
func (d *decoder) id() []byte {
	id := d.take(d.bounded(len(d.buf)))
	if len(id) == 0 {
		d.fail(errRange)
	}
	return id
}

// logNumbers deals out the log numbers of a batch from the first of each log.
type logNumbers struct {
	firsts []uint64
	logs   []string
	next   []uint64
}

func (l *logNumbers) begin(firsts []uint64) {
	l.firsts, l.logs, l.next = firsts, l.logs[:0], l.next[:0]
}

func (l *logNumbers) take(log string, count uint64) (uint64, bool) {
	for i, known := range l.logs {
		if known == log {
			first := l.next[i]
			l.next[i] += count
			return first, true
		}
	}
	if len(l.logs) == len(l.firsts) {
		return 0, false
	}
	first := l.firsts[len(l.logs)]
	l.logs, l.next = append(l.logs, log), append(l.next, first+count)
	return first, true
}
