package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	attemptTimeout  = 5 * time.Second
	maxResponseRead = 4 << 10 // bytes; the rest is not read
	userAgent       = "seckill-webhooks"
)

// newSecret returns a new signing secret in the form of Standard Webhooks.
func newSecret() string {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // it never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// Sender makes the requests. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	allow  Allow
}

// NewSender returns a sender. roots are the certificates that receivers' chains must end in; nil:
// those of the system.
func NewSender(allow Allow, roots *x509.CertPool) *Sender {
	return &Sender{allow: allow, client: &http.Client{
		Timeout: attemptTimeout,
		Transport: &http.Transport{ // without a proxy: it would dial for us
			DialContext: allow.dial, TLSHandshakeTimeout: attemptTimeout,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true, DisableCompression: true,
			MaxResponseHeaderBytes: 16 << 10, MaxIdleConns: 256, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// message is one signed request.
type message struct {
	id, url string
	at      time.Time
	secrets []string
	body    []byte
}

// send makes one request. It returns the response's status, 0 without a response, and the problem.
func (s *Sender) send(ctx context.Context, m message) (int, Problem) {
	if s.allow.CheckURL(m.url) != nil { // the settings may have changed
		return 0, PrivateAddress
	}
	signature, err := sign(m)
	if err != nil {
		return 0, BadSecret
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return 0, NotConnected
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(standardwebhooks.HeaderWebhookID, m.id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(m.at.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	res, err := s.client.Do(req)
	if err != nil {
		return 0, problemOf(err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, maxResponseRead) // so that the connection is used again
	switch {
	case res.StatusCode >= 200 && res.StatusCode <= 299:
		return res.StatusCode, NoProblem
	case res.StatusCode >= 300 && res.StatusCode <= 399:
		return res.StatusCode, Redirected
	default:
		return res.StatusCode, BadStatus
	}
}

// sign returns the value of the header webhook-signature: one signature for each secret.
func sign(m message) (string, error) {
	var all []string
	for _, secret := range m.secrets {
		key, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return "", errors.New("the secret is not base64") // the library's error may show it
		}
		signature, err := key.Sign(m.id, m.at, m.body)
		if err != nil {
			return "", err
		}
		all = append(all, signature)
	}
	return strings.Join(all, " "), nil
}

// problemOf maps an error of a request to its problem. Owners see the problem only: the error's
// text may contain addresses of private networks.
func problemOf(err error) Problem {
	var timeout interface{ Timeout() bool }
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.Is(err, errPrivateAddress):
		return PrivateAddress
	case errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert):
		return BadTLS
	default:
		return NotConnected
	}
}
