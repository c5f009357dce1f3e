package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
)

// Content is the bytes of an attachment or artifact: see package blob.
type Content = blob.Content

// Errors about bytes.
var (
	// ErrNoMaterials says that the host keeps no attachments and artifacts.
	ErrNoMaterials = errors.New("this host keeps no attachments and artifacts")
	// ErrTooLarge says that there are more bytes than the host takes.
	ErrTooLarge = blob.ErrTooLarge
	// ErrContentDamaged says that bytes are not what they were when they were kept.
	ErrContentDamaged = blob.ErrDamaged
	// ErrContentMissing says that there are no bytes: none yet, or none any more.
	ErrContentMissing = blob.ErrNotFound
)

// Material kinds, as the paths and rows name them.
const (
	Attachments = index.Attachments
	Artifacts   = index.Artifacts
)

// Material is an attachment or artifact of a session.
type Material struct {
	ID     string
	Digest string // empty where no bytes are kept
	index.Material
}

// Upload is an attachment that comes.
type Upload struct {
	Session   string
	CommandID string
	Name      string
	MediaType string
	Content   io.Reader
	// Check judges the digest before anything is kept of it; nil takes any.
	Check func(digest [32]byte) error
}

// Upload admits an attachment: it authorises, keeps the bytes, and records that they are
// there, in this order. The error is one of Do, ErrTooLarge, ErrStorageFull,
// ErrNoMaterials, that of the reader or of Check; but for a full disk, a failure of the
// content itself is recorded as one.
func (h *Host) Upload(ctx context.Context, p access.Principal, u Upload) (Material, Answer, error) {
	view, err := h.Attach(ctx, p, access.UploadAttachment, u.Session)
	if err != nil {
		return Material{}, Answer{}, err
	}
	id := h.opt.NewID()
	told := facts.Material{Name: u.Name, MediaType: u.MediaType}
	held, err := h.shelf.put(u.Content, h.opt.MaxAttachment)
	if err == nil && u.Check != nil {
		if err = u.Check(held.Digest); err != nil {
			held.release()
			h.sweepSoon()
		}
	}
	if err != nil {
		h.noteFailed(p, u, decide.FailAttachment{AttachmentID: id, Material: told}, err)
		return Material{}, Answer{}, err
	}
	defer held.release()
	told.Bytes, told.Digest = held.Size, held.Digest.String()
	answer, err := h.Do(ctx, p, Request{
		Action: access.UploadAttachment, Session: u.Session, CommandID: u.CommandID,
		Command: decide.AddAttachment{AttachmentID: id, Material: told},
	})
	if err != nil || !answer.Status.Accepted() {
		h.sweepSoon()
		return Material{}, answer, err
	}
	m, err := view.Material(ctx, Attachments, answer.RequestID)
	return m, answer, err
}

// noteFailed records an upload whose bytes were refused or did not come whole, so that
// who watches the session knows. Nothing depends on it.
func (h *Host) noteFailed(p access.Principal, u Upload, f decide.FailAttachment, cause error) {
	switch {
	case errors.Is(cause, ErrStorageFull), errors.Is(cause, ErrNoMaterials), errors.Is(cause, ErrClosed), h.life.Err() != nil:
		return
	case errors.Is(cause, ErrTooLarge):
		f.Code, f.Message = "too_large", "The attachment is larger than the host takes."
	case errors.Is(cause, ErrDigestMismatch):
		f.Code, f.Message = "digest_mismatch", "The bytes that came are not those that were announced."
	default:
		f.Code, f.Message = "incomplete", "The attachment did not come whole."
	}
	r := Request{Action: access.UploadAttachment, Session: u.Session, Command: f}
	if _, err := h.Do(h.life, p, r); err != nil {
		h.opt.Logger.Warn("record a failed attachment", "session", u.Session, "error", err)
	}
}

// ErrDigestMismatch is for Upload.Check: the bytes are not the announced ones.
var ErrDigestMismatch = errors.New("the content does not have the announced digest")

// Material returns an attachment or artifact of the session, or ErrNotFound.
func (v *View) Material(ctx context.Context, kind, id string) (Material, error) {
	return v.host.material(ctx, v.row.Session, kind, id)
}

func (h *Host) material(ctx context.Context, session, kind, id string) (Material, error) {
	row, err := journal.Get[journal.MaterialRow](ctx, h.journal, journal.MaterialKey(session, kind, id))
	if err != nil {
		return Material{}, fmt.Errorf("find %s: %w", kind, err)
	}
	return materialOf(row), nil
}

func materialOf(row journal.MaterialRow) Material {
	return Material{ID: row.ID, Digest: row.Digest, Material: index.Read[index.Material](row.Value)}
}

// Materials lists the attachments or artifacts of the session in the order of their ids,
// which is that of their making, and names those of which no more is known.
func (v *View) Materials(ctx context.Context, kind, cursor string, limit int) (list []Material, lost []Lost, next string, err error) {
	of := journal.Materials{Session: v.row.Session, Space: kind}
	rows, next, err := journal.OnePage[journal.MaterialRow](ctx, v.host.journal, of, journal.RowPage{Cursor: cursor, Limit: limit},
		func(d journal.Damage) {
			v.host.damaged(d)
			l := Lost{SessionID: v.row.Session}
			if kind == Attachments {
				l.AttachmentID = d.Key.ID
			} else {
				l.ArtifactID = d.Key.ID
			}
			lost = append(lost, l)
		})
	if err != nil {
		return nil, nil, "", fmt.Errorf("list %ss: %w", kind, err)
	}
	for _, row := range rows {
		list = append(list, materialOf(row))
	}
	return list, lost, next, nil
}

// Open opens the bytes of a material, which the caller closes. The errors are
// ErrContentMissing and ErrContentDamaged.
func (v *View) Open(m Material) (*Content, error) {
	d, err := v.host.digestOf(m)
	if err != nil {
		return nil, err
	}
	return v.host.shelf.store.Open(d)
}

// OpenSection opens a part of the bytes; the whole was checked before.
func (v *View) OpenSection(m Material, offset, length int64) (io.ReadCloser, error) {
	d, err := v.host.digestOf(m)
	if err != nil {
		return nil, err
	}
	return v.host.shelf.store.Section(d, offset, length)
}

func (h *Host) digestOf(m Material) (blob.Digest, error) {
	if h.shelf.store == nil || m.Digest == "" {
		return blob.Digest{}, ErrContentMissing
	}
	d, err := blob.ParseDigest(m.Digest)
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return d, nil
}

// readyAttachment returns an attachment of the session that can be read.
func (o *owner) readyAttachment(ctx context.Context) func(string) (facts.Material, bool) {
	return func(attachment string) (facts.Material, bool) {
		m := o.attachment(ctx, attachment)
		if m.State != index.MaterialReady {
			return facts.Material{}, false
		}
		return facts.Material{Name: m.Name, MediaType: m.MediaType, Bytes: m.Bytes, Digest: m.Digest}, true
	}
}

func (o *owner) removedAttachment(ctx context.Context) func(string) bool {
	return func(attachment string) bool { return o.attachment(ctx, attachment).State == index.MaterialRemoved }
}

// attachment is one of the session; it has no state if there is none.
func (o *owner) attachment(ctx context.Context, id string) Material {
	row, known := lookUp[journal.MaterialRow](ctx, o, journal.MaterialKey(o.id, Attachments, id))
	if !known {
		return Material{}
	}
	return materialOf(row)
}

// attachments are those of a message, for its agent. One that is gone meanwhile says so
// when it is opened.
func (o *owner) attachments(ids []string) []agent.Attachment {
	var list []agent.Attachment
	for _, id := range ids {
		m, err := o.host.material(o.host.life, o.id, Attachments, id)
		a := agent.Attachment{ID: id, Name: m.Name, MediaType: m.MediaType, Bytes: m.Bytes}
		a.Open = func() (io.ReadCloser, error) {
			if err != nil {
				return nil, err
			}
			d, err := o.host.digestOf(m)
			if err != nil {
				return nil, err
			}
			return o.host.shelf.store.Open(d)
		}
		list = append(list, a)
	}
	return list
}
