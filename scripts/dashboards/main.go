// Command dashboards asks a Prometheus every query of Grafana's dashboards, and ends with an error that names those which have
// no data: a panel that shows nothing on a working installation is a panel nobody will believe on a bad day.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// dashboard is what is read of one.
type dashboard struct {
	Title  string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("dashboards", flag.ContinueOnError)
	base := flags.String("prometheus", "http://127.0.0.1:9090", "`URL` of Prometheus")
	patience := flags.Duration("patience", time.Minute, "how long all queries together may take to have data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no dashboard is named")
	}
	ctx, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	var empty []error
	for _, file := range flags.Args() {
		d, err := read(file)
		if err != nil {
			return err
		}
		queries, without := ask(ctx, *base, d)
		fmt.Fprintf(stdout, "%s: %d queries, %d without data\n", d.Title, queries, len(without))
		empty = append(empty, without...)
	}
	return errors.Join(empty...)
}

func read(file string) (dashboard, error) {
	var d dashboard
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read the dashboard %s: %w", file, err)
	}
	return d, nil
}

// ask asks every query of a dashboard until it has data or time is up.
func ask(ctx context.Context, base string, d dashboard) (queries int, without []error) {
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries++
			// A window that a short rush fits into.
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			if err := until(ctx, base, expr); err != nil {
				without = append(without, fmt.Errorf("%s, %s: %s: %w", d.Title, panel.Title, expr, err))
			}
		}
	}
	return queries, without
}

var errNoData = errors.New("no data")

func until(ctx context.Context, base, expr string) error {
	for {
		err := query(context.WithoutCancel(ctx), base, expr)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// query asks one query once; errNoData where the answer is empty.
func query(ctx context.Context, base, expr string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("status %s: %w", resp.Status, err)
	}
	switch {
	case answer.Error != "":
		return errors.New(answer.Error)
	case len(answer.Data.Result) == 0:
		return errNoData
	}
	return nil
}
