package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/narad/client"
)

// homeFlag names the home of a host.
type homeFlag struct {
	Home string `placeholder:"DIR" help:"Home of the host. Otherwise MAHATI_HOME, or mahati in the XDG state directory."`
}

// dir returns the home as an absolute path.
func (h homeFlag) dir(a *app) (string, error) {
	if h.Home == "" {
		return config.DefaultHome(a.Getenv)
	}
	return filepath.Abs(h.Home)
}

// hostFlags say which host a client command speaks to.
type hostFlags struct {
	homeFlag
	URL       string `name:"url" placeholder:"URL" help:"Address of the host. Otherwise MAHATI_URL, or the host that runs on the home."`
	TokenFile string `placeholder:"FILE" help:"File that holds the access token. Otherwise MAHATI_TOKEN, or the token of the home, which its own socket does without."`
}

// connect returns a client of the host.
func (h hostFlags) connect(a *app) (*client.Client, error) {
	address, token, err := h.find(a)
	if err != nil {
		return nil, err
	}
	c, err := client.New(address, client.Options{
		Token: token, UserAgent: "mahati/" + a.version(),
		Backoff: client.Exponential(50*time.Millisecond, time.Second, func() float64 { return 1 }),
	})
	if err != nil {
		return nil, fmt.Errorf("use address %s: %w", oneLine(address), err)
	}
	return c, nil
}

// find returns where the host is, and the token to show there: none on a socket, unless one
// was given.
func (h hostFlags) find(a *app) (address string, token client.Token, err error) {
	home, err := h.dir(a)
	if err != nil {
		return "", "", err
	}
	if address, err = h.address(a, home); err != nil {
		return "", "", err
	}
	if token, err = h.given(a); token != "" || err != nil || strings.HasPrefix(address, socketScheme) {
		return address, token, err
	}
	secret, err := access.ReadFirst(home)
	if err != nil {
		return "", "", &fault{err: err, code: exitFailed, hint: "give a token with --token-file or MAHATI_TOKEN"}
	}
	return address, client.Token(secret.Reveal()), nil
}

const socketScheme = "unix:"

func (h hostFlags) address(a *app, home string) (string, error) {
	for _, address := range []string{h.URL, a.Getenv("MAHATI_URL")} {
		if address != "" {
			return address, nil
		}
	}
	if path, err := daemon.SocketPath(home); err == nil && isSocket(path) {
		return (&url.URL{Scheme: "unix", Path: path}).String(), nil
	}
	text, err := os.ReadFile(filepath.Join(home, daemon.AddressFile))
	if errors.Is(err, fs.ErrNotExist) {
		hint := "start one with: mahati serve"
		if h.Home != "" {
			hint += " --home " + h.Home
		}
		return "", &fault{err: fmt.Errorf("no host runs on %s", home), code: exitFailed, hint: hint}
	}
	if err != nil {
		return "", fmt.Errorf("find the host: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// given is the token that the caller names, "" for none.
func (h hostFlags) given(a *app) (client.Token, error) {
	if h.TokenFile == "" {
		return client.Token(a.Getenv("MAHATI_TOKEN")), nil
	}
	text, err := os.ReadFile(h.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := client.Token(strings.TrimSpace(string(text)))
	if token == "" {
		return "", fmt.Errorf("read the token: %s is empty", h.TokenFile)
	}
	return token, nil
}
