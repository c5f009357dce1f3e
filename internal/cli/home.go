package cli

import (
	"errors"
	"fmt"
	"io/fs"
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
	TokenFile string `placeholder:"FILE" help:"File that holds the access token. Otherwise MAHATI_TOKEN, or the token of the home."`
}

// connect returns a client of the host.
func (h hostFlags) connect(a *app) (*client.Client, error) {
	home, err := h.dir(a)
	if err != nil {
		return nil, err
	}
	url, err := h.address(a, home)
	if err != nil {
		return nil, err
	}
	token, err := h.token(a, home)
	if err != nil {
		return nil, err
	}
	c, err := client.New(url, client.Options{
		Token: token, UserAgent: "mahati/" + a.version(),
		Backoff: client.Exponential(50*time.Millisecond, time.Second, func() float64 { return 1 }),
	})
	if err != nil {
		return nil, fmt.Errorf("use address %s: %w", oneLine(url), err)
	}
	return c, nil
}

func (h hostFlags) address(a *app, home string) (string, error) {
	for _, url := range []string{h.URL, a.Getenv("MAHATI_URL")} {
		if url != "" {
			return url, nil
		}
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

func (h hostFlags) token(a *app, home string) (client.Token, error) {
	if h.TokenFile != "" {
		text, err := os.ReadFile(h.TokenFile)
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		return client.Token(strings.TrimSpace(string(text))), nil
	}
	if text := a.Getenv("MAHATI_TOKEN"); text != "" {
		return client.Token(text), nil
	}
	secret, err := access.ReadFirst(home)
	if err != nil {
		return "", &fault{err: err, code: exitFailed, hint: "give a token with --token-file or MAHATI_TOKEN"}
	}
	return client.Token(secret.Reveal()), nil
}
