package app

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// The linker sets these with -ldflags "-X flashsale.dev/seckill/internal/app.version=…" (likewise
// commit and date) if a program is built without its repository.
var version, commit, date string //nolint:gochecknoglobals // the linker can set only globals

// Version returns the version, commit and date that the program was built from.
func Version() string {
	v, c, d := version, commit, date
	if info, ok := debug.ReadBuildInfo(); ok {
		v = cmp.Or(v, info.Main.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				c = cmp.Or(c, s.Value)
			case "vcs.time":
				d = cmp.Or(d, s.Value)
			}
		}
	}
	const unknown = "unknown"
	return fmt.Sprintf("version %s, commit %s, of %s", cmp.Or(v, unknown), cmp.Or(c, unknown),
		cmp.Or(d, unknown))
}
