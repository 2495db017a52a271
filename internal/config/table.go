package config

import (
	"reflect"
	"slices"
	"strings"
)

// Setting describes one setting of a program.
type Setting struct {
	Name, Unit, Help string
	Default          string // for the program that Settings got; "": the setting is empty then

	field reflect.StructField
	index []int
}

// Settings lists the settings that a program reads, in the order of Config's fields; for "" it
// lists all. Load, Help and the generated reference use this list.
func Settings(p Program) []Setting {
	var all []Setting
	for _, group := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		for _, f := range reflect.VisibleFields(group.Type) {
			if p == "" || in(f.Tag.Get("in"), p) {
				all = append(all, setting(p, group, f))
			}
		}
	}
	return all
}

func setting(p Program, group, f reflect.StructField) Setting {
	def := f.Tag.Get("envDefault")
	if own, ok := f.Tag.Lookup("envDefault." + string(p)); ok && p != "" {
		def = own
	}
	return Setting{
		Name: f.Tag.Get("env"), Unit: f.Tag.Get("unit"), Help: f.Tag.Get("help"), Default: def,
		field: f, index: slices.Concat(group.Index, f.Index),
	}
}

func in(programs string, p Program) bool {
	return slices.Contains(strings.Fields(programs), string(p))
}
