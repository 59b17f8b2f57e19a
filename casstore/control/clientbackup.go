package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Backup writes a backup to w. The stream comes over a connection of its own.
func (c *Client) Backup(ctx context.Context, o casstore.BackupOptions, w io.Writer) (casstore.BackupReport, error) {
	q := url.Values{"workspace": o.Workspaces}
	if o.Since != "" {
		q.Set("since", o.Since)
	}
	answer, err := c.post(ctx, backupPath, q, nil)
	if err != nil {
		return casstore.BackupReport{}, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(w, answer.Body)
	if err != nil {
		return casstore.BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	var out streamOutcome
	if err := json.Unmarshal([]byte(answer.Trailer.Get(outcomeTrailer)), &out); err != nil || out.Backup == nil {
		return casstore.BackupReport{}, c.closedError(errors.New("the backup has no end"))
	}
	return *out.Backup, decodeError(out.Code, out.Text)
}

// Load reads a backup from r, all of it also when it fails.
func (c *Client) Load(ctx context.Context, o casstore.LoadOptions, r io.Reader) (casstore.LoadReport, error) {
	q := url.Values{}
	if o.As != "" {
		q.Set("as", o.As)
	}
	answer, err := c.post(ctx, loadPath, q, r)
	if err != nil {
		return casstore.LoadReport{}, err
	}
	defer answer.Body.Close()
	var out streamOutcome
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Load == nil {
		return casstore.LoadReport{}, c.closedError(errors.New("the load was not answered"))
	}
	return *out.Load, decodeError(out.Code, out.Text)
}

// post makes a request beside the frames, over a connection that ends with the answer's body.
func (c *Client) post(ctx context.Context, path string, q url.Values, body io.Reader) (*http.Response, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return DialSocket(ctx, c.dir) },
	}
	to := url.URL{Scheme: "http", Host: "carrel", Path: path, RawQuery: q.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, interrupted(ctx)
	case err != nil:
		return nil, fmt.Errorf("ask the owner of the store %s: %w", c.dir, err)
	case answer.StatusCode != http.StatusOK:
		return nil, errors.Join(fmt.Errorf("%s of the owner: %s: %w", path, answer.Status, vfs.ErrNotSupported), answer.Body.Close())
	}
	return answer, nil
}
