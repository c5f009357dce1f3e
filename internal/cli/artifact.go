package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"

	"github.com/mahati-host/mahati/narad/client"
)

type artifactCommands struct {
	Ls  artifactLsCommand  `cmd:"" help:"List the artifacts of a session, or the attachments of its messages."`
	Get artifactGetCommand `cmd:"" help:"Write the content of an artifact, or of an attachment."`
}

func (artifactCommands) Help() string { return "Example: mahati artifact ls SESSION" }

type artifactLsCommand struct {
	hostFlags
	Attachments bool   `help:"List attachments instead."`
	JSON        bool   `name:"json" help:"Print one JSON object a line."`
	Session     string `arg:"" help:"Session."`
}

func (artifactLsCommand) Help() string { return `Example: mahati artifact ls SESSION` }

func kindOf(attachments bool) client.Kind {
	if attachments {
		return client.Attachments
	}
	return client.Artifacts
}

// fileLine is a file for programs.
type fileLine struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Name      string `json:"name,omitzero"`
	MediaType string `json:"mediaType,omitzero"`
	Bytes     int64  `json:"bytes"`
	Digest    string `json:"digest,omitzero"`
	Code      string `json:"code,omitzero"`
	RunID     string `json:"runId,omitzero"`
	UpdatedAt string `json:"updatedAt"`
}

func (c artifactLsCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	for f, err := range host.Files(ctx, c.Session, kindOf(c.Attachments)) {
		if err != nil {
			return a.damaged(err)
		}
		if c.JSON {
			err = a.printJSON(fileLine{f.ID(), f.State, f.Name, f.MediaType, f.Bytes, f.Digest, f.Code, f.RunID, f.UpdatedAt})
		} else {
			_, err = fmt.Fprintln(a.out, oneLine(joined("  ", f.ID(), f.State, joined(" ", f.Name, f.Code), f.MediaType, count(f.Bytes, "byte"))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type artifactGetCommand struct {
	hostFlags
	Attachment bool   `help:"The id is that of an attachment."`
	Output     string `short:"o" placeholder:"FILE" help:"Write to this file, which must not be there. Otherwise to standard output."`
	Session    string `arg:"" help:"Session."`
	ID         string `arg:"" name:"id" help:"Artifact, as the list shows it."`
}

func (artifactGetCommand) Help() string {
	return `The host checks the content as it goes: what is damaged is an error, and leaves no file.

Example: mahati artifact get SESSION ARTIFACT -o report.pdf`
}

func (c artifactGetCommand) Run(ctx context.Context, a *app) error {
	if c.Output == "" && a.out.terminal {
		return usage("write it to a file with -o", "the content of an artifact may hold what a terminal obeys")
	}
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	if c.Output == "" {
		return host.Download(ctx, c.Session, kindOf(c.Attachment), c.ID, a.Stdout)
	}
	return intoFile(c.Output, func(to io.Writer) error {
		return host.Download(ctx, c.Session, kindOf(c.Attachment), c.ID, to)
	})
}

// intoFile writes a new file, and leaves none where that does not go through.
func intoFile(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// attachable says what keeps a file from being attached, before anything is begun.
func attachable(files []string) error {
	for _, name := range files {
		info, err := os.Stat(name)
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is no file")
		}
		if err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
	}
	return nil
}

// attach uploads files for a message and returns their ids.
func attach(ctx context.Context, host *client.Client, session string, files []string) ([]string, error) {
	var ids []string
	for _, name := range files {
		id, err := attachOne(ctx, host, session, name)
		if err != nil {
			return nil, fmt.Errorf("attach %s: %w", name, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func attachOne(ctx context.Context, host *client.Client, session, name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return "", errors.Join(err, errors.New("it is no file"))
	}
	f, err := host.UploadAttachment(ctx, client.Upload{
		SessionID: session, Name: filepath.Base(name), MediaType: mime.TypeByExtension(filepath.Ext(name)), Content: file,
	})
	return f.AttachmentID, err
}
