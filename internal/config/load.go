package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

const prefix = "SECKILL_"

// otelEndpoint is OpenTelemetry's own variable; it applies where SECKILL_OTLP_ENDPOINT is empty.
const (
	otlpEndpoint = prefix + "OTLP_ENDPOINT"
	otelEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// Load reads a program's settings from an environment in the form of os.Environ. An empty setting
// has its default. The error has a line for each problem, which names the setting and never shows a
// secret's value. warnings name unknown settings, values in quotation marks, and secrets of an
// example.
func Load(p Program, environ []string) (cfg Config, warnings []string, err error) {
	provided := relevant(environ)
	settings := Settings(p)
	problems, unparsed := parse(&cfg, settings, values(settings, provided))
	cfg.HTTP.Currency = strings.ToUpper(cfg.HTTP.Currency) // as in all answers
	problems = append(problems, cfg.check(settings, unparsed)...)
	problems = append(problems, cfg.Payment.check(p)...)
	problems = append(problems, cfg.OIDC.check()...)
	problems = append(problems, cfg.checkTokens(p)...)
	if _, err := cfg.Auth.OrderKeys(); p == Consumer && err != nil {
		problems = append(problems, err)
	}
	warnings = slices.Concat(unknown(provided), quoted(provided), cfg.Auth.warnings())
	return cfg, warnings, errors.Join(problems...)
}

// quoted returns a warning for each value in quotation marks. Shells and Compose remove them from a
// file of settings. Kubernetes and docker run keep them, so a program there has another secret or
// address than other programs with the same file.
func quoted(provided map[string]string) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(provided)) {
		v := provided[name]
		if last := len(v) - 1; last > 0 && v[0] == v[last] && (v[0] == '\'' || v[0] == '"') {
			warnings = append(warnings, name+" has quotation marks, which count as a part of the "+
				"value: remove them from the file of settings")
		}
	}
	return warnings
}

// relevant returns the variables that are settings, by name. It stores OpenTelemetry's variable
// under our name, so that one check serves both.
func relevant(environ []string) map[string]string {
	provided, otel := map[string]string{}, ""
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefix) {
			provided[name] = value
		} else if name == otelEndpoint {
			otel = value
		}
	}
	if provided[otlpEndpoint] == "" && otel != "" {
		provided[otlpEndpoint] = otel
	}
	return provided
}

// values returns the defaults of all settings, overridden by the environment's values of the
// program's own settings. An empty value counts as absent: Compose and Kubernetes set omitted
// variables to an empty text.
func values(settings []Setting, provided map[string]string) map[string]string {
	values := map[string]string{}
	for _, s := range slices.Concat(Settings(""), settings) {
		values[s.Name] = s.Default
	}
	for _, s := range settings {
		if v := s.Trim(provided[s.Name]); v != "" {
			values[s.Name] = v
		}
	}
	return values
}

// Trim returns a value without the spaces around it, such as the line break of a file. A secret
// keeps them: a password may have some, and a secret without them would sign differently. Stripe's
// secrets have none, and DSNs have their passwords inside.
func (s Setting) Trim(value string) string {
	trimmed := strings.HasPrefix(s.Name, prefix+"STRIPE_") || strings.HasSuffix(s.Name, "_DSN")
	if s.field.Type == reflect.TypeFor[Secret]() && !trimmed {
		return value
	}
	return strings.TrimSpace(value)
}

// parse fills cfg from the values. unparsed names the settings that it could not parse. The library
// reads this map instead of the process' environment, so that tests need no environment.
func parse(
	cfg *Config, settings []Setting, values map[string]string,
) (problems []error, unparsed []string) {
	err := env.ParseWithOptions(cfg, env.Options{
		Environment: values, DefaultValueTagName: "-", // values has the defaults already
	})
	all, ok := errors.AsType[env.AggregateError](err)
	if err != nil && !ok {
		return []error{err}, nil
	}
	for _, e := range all.Errors {
		name, err := nameSetting(e, settings)
		problems, unparsed = append(problems, err), append(unparsed, name)
	}
	return problems, unparsed
}

// nameSetting replaces the field's name in an error by the setting's name, because operators set
// variables and not our fields. It returns that name too.
func nameSetting(err error, settings []Setting) (string, error) {
	e, ok := errors.AsType[env.ParseError](err)
	if !ok {
		return "", err
	}
	i := slices.IndexFunc(settings, func(s Setting) bool {
		return s.field.Name == e.Name && s.field.Type == e.Type
	})
	if i < 0 {
		return "", err
	}
	name := settings[i].Name
	return name, fmt.Errorf("%s: must be %s: %w", name, formOf(settings[i]), e.Err)
}

// formOf returns what the value of a setting must be.
func formOf(s Setting) string {
	switch s.field.Type {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 500ms or 15s"
	case reflect.TypeFor[int]():
		return "a whole number (" + s.Unit + ")"
	}
	return s.Unit
}
