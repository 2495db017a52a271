// Package config reads the environment of the contract into one typed struct.
//
// Every setting is one field, whose tags say all there is to know of it: its name, its default, its unit, which
// programs read it, and a sentence of help. Parsing, -help and the README's table all come from those tags.
//
// All problems are reported at once. Secrets print as ***. A SECKILL_ name that no setting has is a warning that
// names the nearest one. It imports auth, for the shortest secret there may be, and caarlos0/env.
package config
