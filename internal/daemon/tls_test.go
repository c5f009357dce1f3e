package daemon_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/daemon"
)

// A host with a certificate speaks TLS alone, from 1.2 on, and its cookie can be set by
// nobody else.
func TestTLS(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		roots := certificate(t, home)
		r := start(t, configured(t, home, "tls.cert = 'cert.pem'", "tls.key = 'key.pem'"), daemon.Options{})
		if !strings.HasPrefix(r.URL(), "https://") || r.file(daemon.AddressFile) != r.URL() {
			t.Errorf("URL: got %s", r.URL())
		}
		clear, err := r.http.Get("http://localhost/readyz")
		if err == nil {
			_ = clear.Body.Close()
			if clear.StatusCode == 200 {
				t.Error("a request in clear is answered")
			}
		}
		transport := r.http.Transport.(*http.Transport)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11}
		if old, err := r.http.Get("https://localhost/readyz"); err == nil {
			_ = old.Body.Close()
			t.Error("TLS 1.1 is spoken")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		login, err := r.http.Post("https://localhost/login", "application/json", strings.NewReader(`{"token":"`+r.token+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = login.Body.Close()
		cookies := login.Cookies()
		if len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-mahati_"+r.Epoch()) || !cookies[0].Secure {
			t.Fatalf("login: got %d %v", login.StatusCode, cookies)
		}
		request, err := http.NewRequestWithContext(t.Context(), "GET", "https://localhost"+narad1+"/capabilities", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.AddCookie(cookies[0])
		if got := r.send(request); got.status != 200 {
			t.Errorf("with the cookie: got %d %s", got.status, got.body)
		}
	})
}

// certificate makes one for localhost in a home.
func certificate(t *testing.T, home string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(home, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return roots
}
