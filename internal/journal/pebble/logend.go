package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
)

// The form of Pebble's write-ahead log: blocks of chunks, each with a checksum (4 bytes),
// its length (2), a code and the number of the log (4). The codes of the two forms that
// Pebble writes differ by four and tell whether a chunk begins a record.
const (
	logBlock   = 32 << 10
	logHeader  = 11
	codeFull   = 5 // of the older form, whose header ends here
	codeFirst  = 6
	codeSynced = 9 // the codes of the newer form begin here
	codeLast   = 12
	syncHeader = logHeader + 8
)

var logTable = crc32.MakeTable(crc32.Castagnoli)

// checkLogEnd refuses a store in whose newest log a place cannot be read while a record
// that was written later can. The committer writes nothing before the write ahead of
// it is on disk, so such a place is damage, and no torn end. Pebble would take it for
// the end of the log unless a later block tells it otherwise, and what was acknowledged
// would be gone without a word.
func checkLogEnd(files vfs.FS, dir string) error {
	name, number, err := newestLog(files, dir)
	if err != nil || name == "" {
		return err
	}
	file, err := files.Open(files.PathJoin(dir, name))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer file.Close()
	block := make([]byte, logBlock)
	bad := -1 // the first place that is no chunk
	for start := 0; ; start += logBlock {
		n, err := io.ReadFull(file, block)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read %s: %w", name, err)
		}
		rest := block[:n]
		if bad < 0 {
			at := chunksOf(rest, number)
			if len(rest)-at < syncHeader { // too little for a chunk: zeros fill the block
				rest = nil
			} else {
				bad, rest = start+at, rest[at+1:]
			}
		}
		if bad >= 0 && beginsRecord(rest, number) {
			return &journal.DamagedError{Cause: fmt.Errorf("%s at byte %d, before what was written later", name, bad)}
		}
		if n < logBlock {
			return nil
		}
	}
}

// newestLog is the log with the highest number, "" if there is none.
func newestLog(files vfs.FS, dir string) (name string, number uint32, err error) {
	list, err := files.List(dir)
	if err != nil {
		return "", 0, fmt.Errorf("list %s: %w", dir, err)
	}
	newest := uint64(0)
	for _, each := range list {
		digits, isLog := strings.CutSuffix(path.Base(each), ".log")
		n, err := strconv.ParseUint(digits, 10, 64)
		if isLog && err == nil && n >= newest {
			name, newest = each, n
		}
	}
	return name, uint32(newest), nil
}

// chunksOf returns where the chunks at the beginning of a block end.
func chunksOf(block []byte, log uint32) int {
	at := 0
	for {
		size := chunkSize(block[at:], log)
		if size == 0 {
			return at
		}
		at += size
	}
}

// beginsRecord reports whether a record begins somewhere in the bytes.
func beginsRecord(b []byte, log uint32) bool {
	for at := 0; at+logHeader <= len(b); at++ {
		switch b[at+6] {
		case codeFull, codeFirst, codeFull + 4, codeFirst + 4:
			if chunkSize(b[at:], log) > 0 {
				return true
			}
		}
	}
	return false
}

// chunkSize is the size of the chunk at the beginning of some bytes, 0 if there is none.
func chunkSize(b []byte, log uint32) int {
	if len(b) < logHeader || b[6] < codeFull || b[6] > codeLast || binary.LittleEndian.Uint32(b[7:]) != log {
		return 0
	}
	header := logHeader
	if b[6] >= codeSynced {
		header = syncHeader
	}
	size := header + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0
	}
	sum := crc32.Checksum(b[6:size], logTable)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return 0
	}
	return size
}
