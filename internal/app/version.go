package app

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// What the linker may set, with -ldflags "-X flashsale.dev/seckill/internal/app.version=… -X ….commit=… -X ….date=…", where
// a program is built without its repository at hand.
var version, commit, date string //nolint:gochecknoglobals // the linker sets nothing else

// Version is the version, the commit and its date that the program was built from, as far as they are known.
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
	return fmt.Sprintf("version %s, commit %s, of %s", cmp.Or(v, unknown), cmp.Or(c, unknown), cmp.Or(d, unknown))
}
