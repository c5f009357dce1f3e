package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// Kind says which of the two kinds of files of a session is meant.
type Kind string

// The kinds.
const (
	Attachments Kind = "attachments" // inputs that came with messages
	Artifacts   Kind = "artifacts"   // outputs of runs
)

// A File is an attachment or artifact of a session, without its bytes.
type File struct {
	// AttachmentID or ArtifactID names it; the other one is empty.
	AttachmentID string `json:"attachmentId"`
	ArtifactID   string `json:"artifactId"`
	// State is added, ready, failed or removed. There are bytes of what is ready.
	State     string `json:"state"`
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	Bytes     int64  `json:"bytes"`
	Digest    string `json:"digest"`
	// Code and Message say why it failed.
	Code            string `json:"code"`
	Message         string `json:"message"`
	RunID           string `json:"runId"`
	ToolCallID      string `json:"toolCallId"`
	SessionSequence int64  `json:"sessionSequence"`
	UpdatedAt       string `json:"updatedAt"`
}

// ID is the id of either kind.
func (f File) ID() string { return f.AttachmentID + f.ArtifactID }

// Upload is an attachment that goes to a host.
type Upload struct {
	SessionID string
	// Name is a file name without a path; MediaType "" says nothing of the content.
	Name      string
	MediaType string
	Content   io.Reader
	// CommandID makes a repetition harmless (R21): the same content under the same id is
	// the same attachment.
	CommandID string
}

// UploadAttachment sends an attachment, which messages of the session can then name. It is
// not repeated, since its content can be read once; only ctx bounds its time.
func (c *Client) UploadAttachment(ctx context.Context, u Upload) (f File, err error) {
	const op = "upload attachment"
	path, err := sessionPath(op, u.SessionID, "/attachments")
	if err != nil {
		return f, err
	}
	query := url.Values{}
	for name, value := range map[string]string{"name": u.Name, "commandId": u.CommandID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	req, err := c.request(ctx, call{op: op, method: http.MethodPost, path: path, query: query}, nil)
	if err != nil {
		return f, fail(op, CodeInvalidRequest, "the request cannot be made")
	}
	req.Body = io.NopCloser(u.Content)
	if u.MediaType != "" {
		req.Header.Set("Content-Type", u.MediaType)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return f, transportError(ctx, op, err)
	}
	r, err := readAll(answer)
	if err != nil {
		return f, transportError(ctx, op, err)
	}
	return f, c.into(op, &f)(r)
}

// RemoveAttachment takes an attachment back.
func (c *Client) RemoveAttachment(ctx context.Context, sessionID, attachmentID string) error {
	const op = "remove attachment"
	name, ok := segment(attachmentID)
	if !ok {
		return badID(op, "an attachment id")
	}
	return c.change(ctx, op, http.MethodDelete, sessionID, "/attachments/"+name)
}

// Files goes through the attachments or artifacts of a session, the oldest first. An error
// is the last turn; a [*DamageError] comes behind all the others.
func (c *Client) Files(ctx context.Context, sessionID string, kind Kind) iter.Seq2[File, error] {
	return pages("", func(cursor string) (page listPage[File], err error) {
		op := "list " + string(kind)
		path, err := sessionPath(op, sessionID, "/"+string(kind))
		if err == nil {
			err = c.get(ctx, op, path, listQuery(0, cursor, ""), &page)
		}
		return page, err
	})
}

// Download writes the bytes of an attachment or artifact. The host checks them: where they
// are damaged the error comes before the end, and what was written is to be thrown away.
func (c *Client) Download(ctx context.Context, sessionID string, kind Kind, id string, to io.Writer) error {
	op := "download " + string(kind)
	name, ok := segment(id)
	if !ok {
		return badID(op, "an id")
	}
	path, err := sessionPath(op, sessionID, "/"+string(kind)+"/"+name)
	if err != nil {
		return err
	}
	req, err := c.request(ctx, call{op: op, method: http.MethodGet, path: path}, nil)
	if err != nil {
		return fail(op, CodeInvalidRequest, "the request cannot be made")
	}
	req.Header.Set("Accept", "*/*")
	req.Header.Set("Accept-Encoding", "identity")
	answer, err := c.http.Do(req)
	if err != nil {
		return transportError(ctx, op, err)
	}
	if answer.StatusCode != http.StatusOK {
		r, err := readAll(answer)
		if err != nil {
			return transportError(ctx, op, err)
		}
		return c.readError(op, r)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(to, answer.Body); err != nil {
		return transportError(ctx, op, err)
	} else if answer.ContentLength >= 0 && n != answer.ContentLength {
		return invalidAnswer(op, "the content is not whole")
	}
	return nil
}
