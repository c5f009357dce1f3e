package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/journal"
)

// verifyBlobs checks that the bytes of each attachment and artifact are there and whole.
// Bytes that nothing names are no problem: the next start removes them.
func verifyBlobs(ctx context.Context, cfg config.Config, j journal.Index, report *journal.Report) (err error) {
	var blobs *blob.Store // not opened where there are none: that would make the directory
	if _, err := os.Stat(blobDir(cfg)); err == nil {
		if blobs, err = blob.Open(blobDir(cfg)); err != nil {
			return err
		}
		defer closeInto(&err, blobs)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for contents: %w", err)
	}
	judged := map[string]string{}         // what is wrong with a digest
	unreadable := func(journal.Damage) {} // the journal has reported it
	for row, err := range journal.Each[journal.MaterialRow](ctx, j, journal.Materials{}, unreadable) {
		if err != nil {
			return fmt.Errorf("list attachments and artifacts: %w", err)
		}
		if row.Digest == "" {
			continue
		}
		wrong, known := judged[row.Digest]
		if !known {
			wrong = wrongWith(blobs, row.Digest)
			judged[row.Digest] = wrong
			report.Contents++
		}
		if wrong != "" {
			report.Add(journal.Problem{Code: journal.ProblemContent, Session: row.Session, Row: row.Key().String(), Detail: wrong})
		}
	}
	return nil
}

func wrongWith(blobs *blob.Store, digest string) string {
	d, err := blob.ParseDigest(digest)
	switch {
	case err != nil:
		return err.Error()
	case blobs == nil:
		return blob.ErrNotFound.Error()
	}
	if err := blobs.Verify(d); err != nil {
		return err.Error()
	}
	return ""
}
