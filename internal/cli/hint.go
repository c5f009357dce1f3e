package cli

import (
	"errors"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narya"
)

// hintFor says what a person can do about an error, "" where nothing general is known.
func hintFor(err error) string {
	var refused *client.Error
	var no *refusal
	var setting *config.Error
	switch {
	case errors.As(err, &refused):
		return hintForHost(refused)
	case errors.As(err, &no) && no.code == codeUnreachable:
		return hintUnreachable
	case errors.As(err, &no) && no.code == string(narya.CodeCursorAhead):
		return hintOtherStore
	case errors.As(err, &no) && no.code == string(narya.CodeNoSuchRoute):
		return "the host serves Narya on the socket of its home alone: leave --url out, or set narya.tcp = true in its config.toml"
	case errors.As(err, &no):
		return hintForStatus(no.status)
	case errors.As(err, &setting):
		return "mahati config example"
	case errors.Is(err, journal.ErrLocked):
		return "stop the host that runs on this home, or use another --home"
	case errors.Is(err, journal.ErrStorageFull):
		return "free space, lower storage.reserve in config.toml, or use a --home on another disk"
	case errors.Is(err, journal.ErrNewerFormat):
		return "use the newer mahati that wrote the store"
	case errors.Is(err, journal.ErrDamaged):
		return "mahati verify"
	case errors.Is(err, access.ErrNotFound):
		return "mahati token list"
	}
	return ""
}

func hintForHost(e *client.Error) string {
	switch e.Code {
	case client.CodeUnreachable, client.CodeTimeout:
		return hintUnreachable
	case client.CodeEpochChanged, client.CodeCursorAhead:
		return "the host has another store than when you left; see it from the start: mahati attach --from 0 SESSION"
	case client.Code(client.Conflict), client.Code(client.Expired):
		return ""
	}
	return hintForStatus(e.Status)
}

const hintUnreachable = "is the host running? start it with: mahati serve"

func hintForStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "this token is not known there, was revoked or has expired; see --token-file and: mahati token create"
	case http.StatusForbidden:
		return "the token's role does not allow this; see: mahati token list"
	case http.StatusNotFound:
		return "see what there is with: mahati ls, mahati inbox"
	case http.StatusServiceUnavailable:
		return "the host is starting or busy; try again in a moment"
	case http.StatusInsufficientStorage:
		return "the disk of the host is full"
	}
	return ""
}
