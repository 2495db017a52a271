// Package config reads the programs' settings from the environment into one typed struct.
//
// Every setting is one field. Its tags hold the name, the default, the unit, the programs that read
// it, and a sentence of help. Parsing, -help and docs/reference/configuration.md use those tags.
//
// Load reports all problems together. Secrets print as ***. A SECKILL_ name that is not a setting
// is a warning that suggests the most similar name.
package config
