package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

const prefix = "SECKILL_"

// OpenTelemetry's own name of a setting is heard where ours is silent.
const (
	otlpEndpoint = prefix + "OTLP_ENDPOINT"
	otelEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// Load reads a program's settings out of an environment as os.Environ gives it. A setting that is empty has its
// default. The error tells every problem there is, a line for each, by the settings' names and never by a secret's
// value; warnings are of names that no setting has.
func Load(p Program, environ []string) (cfg Config, warnings []string, err error) {
	given := ours(environ)
	settings := Settings(p)
	problems := parse(&cfg, settings, values(settings, given))
	problems = append(problems, cfg.check(settings)...)
	if _, err := cfg.Auth.OrderKey(); p == Consumer && err != nil {
		problems = append(problems, fmt.Errorf("SECKILL_JWT_SECRET: %w", err))
	}
	return cfg, unknown(given), errors.Join(problems...)
}

func ours(environ []string) map[string]string {
	given, otel := map[string]string{}, ""
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefix) {
			given[name] = value
		} else if name == otelEndpoint {
			otel = value
		}
	}
	if given[otlpEndpoint] == "" && otel != "" {
		given[otlpEndpoint] = otel
	}
	return given
}

// values are the defaults of all settings, and over them those of the program's own that were given.
func values(settings []Setting, given map[string]string) map[string]string {
	values := map[string]string{}
	for _, s := range slices.Concat(Settings(""), settings) {
		values[s.Name] = s.Default
	}
	for _, s := range settings {
		if v := given[s.Name]; v != "" {
			values[s.Name] = v
		}
	}
	return values
}

func parse(cfg *Config, settings []Setting, values map[string]string) []error {
	err := env.ParseWithOptions(cfg, env.Options{
		Environment: values, DefaultValueTagName: "-", // the defaults are in values already
	})
	all, ok := errors.AsType[env.AggregateError](err)
	if err != nil && !ok {
		return []error{err}
	}
	var problems []error
	for _, e := range all.Errors {
		problems = append(problems, named(e, settings))
	}
	return problems
}

// named puts the setting's name in the place of the field's.
func named(err error, settings []Setting) error {
	e, ok := errors.AsType[env.ParseError](err)
	if !ok {
		return err
	}
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.field.Name == e.Name && s.field.Type == e.Type })
	if i < 0 {
		return err
	}
	return fmt.Errorf("%s: must be %s: %w", settings[i].Name, settings[i].Unit, e.Err)
}
