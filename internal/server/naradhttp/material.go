package naradhttp

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// material is an attachment or artifact as lists and answers show it.
type material struct {
	AttachmentID    string `json:"attachmentId,omitzero"`
	ArtifactID      string `json:"artifactId,omitzero"`
	State           string `json:"state"`
	Name            string `json:"name,omitzero"`
	MediaType       string `json:"mediaType,omitzero"`
	Bytes           *int64 `json:"bytes,omitzero"` // nil where there are none, not even 0
	Digest          string `json:"digest,omitzero"`
	Code            string `json:"code,omitzero"`
	Message         string `json:"message,omitzero"`
	RunID           string `json:"runId,omitzero"`
	ToolCallID      string `json:"toolCallId,omitzero"`
	SessionSequence int64  `json:"sessionSequence"`
	UpdatedAt       string `json:"updatedAt"`
}

func shownMaterial(kind string, m host.Material) material {
	shown := material{
		State: m.State, Name: m.Name, MediaType: m.MediaType, Digest: m.Digest, Code: m.Code, Message: m.Message,
		RunID: m.RunID, ToolCallID: m.ToolCallID, SessionSequence: m.SessionSequence, UpdatedAt: m.UpdatedAt,
	}
	if m.Digest != "" {
		shown.Bytes = &m.Bytes
	}
	if kind == host.Attachments {
		shown.AttachmentID = m.ID
	} else {
		shown.ArtifactID = m.ID
	}
	return shown
}

// upload takes an attachment: the body is its bytes.
func (b *Binding) upload(w http.ResponseWriter, r *request) error {
	session, err := r.session()
	if err != nil {
		return err
	}
	u, err := uploadOf(r, session)
	if err != nil {
		return err
	}
	m, answer, err := b.host.Upload(r.Context(), r.principal(), u)
	switch {
	case errors.Is(err, host.ErrTooLarge):
		return &server.Problem{
			HTTPStatus: http.StatusRequestEntityTooLarge, Code: server.CodeBodyTooLarge, Detail: "the attachment is larger than allowed",
			Members: map[string]any{"limit": b.host.MaxAttachment()},
		}
	case err != nil:
		return server.BodyError(err)
	case answer.Status == decide.Conflict && answer.RequestID != "":
		return &server.Problem{
			HTTPStatus: http.StatusConflict, Code: "command_id_used", Detail: answer.Detail,
			Members: map[string]any{"attachmentId": answer.RequestID},
		}
	case answer.Status == decide.Conflict:
		return server.Conflict("session_busy", answer.Detail)
	case answer.Status != decide.Accepted:
		return host.ErrNotFound
	}
	w.Header().Set("ETag", etag(m))
	w.Header().Set("Location", Prefix+"/sessions/"+session+"/attachments/"+m.ID)
	return write(w, http.StatusCreated, shownMaterial(host.Attachments, m))
}

func uploadOf(r *request, session string) (host.Upload, error) {
	u := host.Upload{
		Session: session, CommandID: r.query.Get("commandId"), Name: r.query.Get("name"),
		MediaType: cmp.Or(r.Header.Get("Content-Type"), host.DefaultMediaType), Content: r.Body,
	}
	if err := checkIDs(named{"commandId", u.CommandID}); err != nil {
		return u, err
	}
	var err error
	if u.Name, err = host.CheckMaterialName(u.Name); err != nil {
		return u, badField("name", err.Error())
	}
	if u.MediaType, err = host.CheckMediaType(u.MediaType); err != nil {
		return u, badField("Content-Type", err.Error())
	}
	u.Check, err = announced(r.Header.Get("Content-Digest"))
	return u, err
}

// announced returns the check of a Content-Digest (RFC 9530), nil where none is given
// that this host can judge.
func announced(header string) (func([32]byte) error, error) {
	for item := range strings.SplitSeq(header, ",") {
		value, ours := strings.CutPrefix(strings.TrimSpace(item), "sha-256=")
		if !ours {
			continue
		}
		value, _ = strings.CutPrefix(value, ":")
		want, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
		if err != nil || len(want) != 32 {
			return nil, badField("Content-Digest", "must be sha-256=:BASE64: of 32 bytes")
		}
		return func(got [32]byte) error {
			if subtle.ConstantTimeCompare(got[:], want) != 1 {
				return host.ErrDigestMismatch
			}
			return nil
		}, nil
	}
	return nil, nil
}

// removeAttachment takes an attachment back.
func (b *Binding) removeAttachment(w http.ResponseWriter, r *request) error {
	session, id, err := b.materialPath(r)
	if err != nil {
		return err
	}
	answer, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.UploadAttachment, Session: session, Command: decide.RemoveAttachment{AttachmentID: id},
	})
	switch {
	case err != nil:
		return err
	case answer.Status == decide.Conflict:
		return server.Conflict("attachment_in_use", answer.Detail)
	case answer.Status == decide.NotFound:
		return noMaterial(host.Attachments)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b *Binding) materialPath(r *request) (session, id string, err error) {
	if session, err = r.session(); err != nil {
		return "", "", err
	}
	id = r.PathValue("material")
	return session, id, checkID("id", id)
}

func noMaterial(kind string) error {
	return &server.Problem{HTTPStatus: http.StatusNotFound, Code: server.CodeNotFound, Detail: "no such " + kind + " in this session"}
}

// materials lists the attachments, or artifacts, of a session.
func (b *Binding) materials(kind string) handler {
	return func(w http.ResponseWriter, r *request) error {
		v, s, err := b.view(r, access.ReadArtifact)
		if err != nil {
			return err
		}
		n, err := limit(r, maxPage)
		if err != nil {
			return err
		}
		scope := []string{"materials", kind, s.SessionID}
		place, err := b.listCursor(r, scope...)
		if err != nil {
			return err
		}
		found, lost, next, err := v.Materials(r.Context(), kind, place, n)
		if err != nil {
			return err
		}
		items := make([]material, 0, len(found))
		for _, m := range found {
			items = append(items, shownMaterial(kind, m))
		}
		return write(w, http.StatusOK, page(items, lost, b.host.Seal(next, scope...)))
	}
}

// content serves the bytes of an attachment, or artifact. They are somebody's, and never
// a page of this host's: a browser offers them as a file, and runs nothing of them.
func (b *Binding) content(kind string) handler {
	return func(w http.ResponseWriter, r *request) error {
		session, id, err := b.materialPath(r)
		if err != nil {
			return err
		}
		v, err := b.host.Attach(r.Context(), r.principal(), access.ReadArtifact, session)
		if err != nil {
			return err
		}
		m, err := v.Material(r.Context(), kind, id)
		if errors.Is(err, host.ErrNotFound) {
			return noMaterial(kind)
		}
		if err != nil {
			return err
		}
		if m.Digest == "" {
			return &server.Problem{HTTPStatus: http.StatusConflict, Code: kind + "_" + m.State, Detail: "there are no bytes of it"}
		}
		return b.serveContent(w, r, v, m)
	}
}

func etag(m host.Material) string { return `"` + m.Digest + `"` }

func (b *Binding) serveContent(w http.ResponseWriter, r *request, v *host.View, m host.Material) error {
	asked, err := rangeOf(r, m)
	if err != nil {
		return err
	}
	h := w.Header()
	if matches(r.Header.Get("If-None-Match"), etag(m)) {
		setContentHeaders(h, m)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	status, length := http.StatusOK, m.Bytes
	content, err := func() (io.ReadCloser, error) {
		if asked == nil {
			return v.Open(m)
		}
		return v.OpenSection(m, asked.first, asked.length())
	}()
	if err != nil {
		return err
	}
	defer content.Close()
	setContentHeaders(h, m)
	if asked != nil {
		status, length = http.StatusPartialContent, asked.length()
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", asked.first, asked.last, m.Bytes))
	}
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	return sendContent(r.Context(), w, content, length)
}

// sendContent copies what was announced. Where that cannot be gone through with, nobody
// shall take what came for the whole: the connection is cut.
func sendContent(ctx context.Context, w io.Writer, content io.Reader, length int64) error {
	n, err := io.Copy(w, content)
	if errors.Is(err, host.ErrContentDamaged) || err == nil && n != length {
		server.NoteFailure(ctx, cmp.Or(err, host.ErrContentDamaged))
		panic(http.ErrAbortHandler)
	}
	return nil // else the client has left
}

func setContentHeaders(h http.Header, m host.Material) {
	h.Set("Content-Type", cmp.Or(m.MediaType, host.DefaultMediaType))
	h.Set("Content-Disposition", disposition(m.Name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Accept-Ranges", "bytes")
	h.Set("ETag", etag(m))
}

func disposition(name string) string {
	if name == "" {
		return "attachment"
	}
	return cmp.Or(mime.FormatMediaType("attachment", map[string]string{"filename": name}), "attachment")
}

// matches reports whether a list of entity tags names one.
func matches(list, tag string) bool {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == tag || item == "*" {
			return true
		}
	}
	return false
}

// byteRange is a part of a content, both ends included.
type byteRange struct{ first, last int64 }

func (b byteRange) length() int64 { return b.last - b.first + 1 }

// rangeOf reads the part that is asked for; nil for all of it. What is not one range of
// bytes is ignored, as RFC 9110 allows.
func rangeOf(r *request, m host.Material) (*byteRange, error) {
	spec, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if condition := r.Header.Get("If-Range"); !ok || condition != "" && condition != etag(m) {
		return nil, nil
	}
	from, to, ok := strings.Cut(spec, "-")
	if !ok || strings.Contains(spec, ",") {
		return nil, nil
	}
	first, errFirst := parseOffset(from)
	last, errLast := parseOffset(to)
	part := byteRange{first, min(last, m.Bytes-1)}
	switch {
	case from == "" && errLast == nil:
		part = byteRange{max(m.Bytes-last, 0), m.Bytes - 1}
	case errFirst != nil || to != "" && errLast != nil || to != "" && last < first:
		return nil, nil
	case to == "":
		part.last = m.Bytes - 1
	}
	if part.first > part.last {
		return nil, &server.Problem{
			HTTPStatus: http.StatusRequestedRangeNotSatisfiable, Code: "range_not_satisfiable", Detail: "the range lies behind the end",
			Members: map[string]any{"bytes": m.Bytes},
		}
	}
	return &part, nil
}

func parseOffset(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}
