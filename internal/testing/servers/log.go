package servers

import (
	"fmt"
	"io"
	"os"
)

// tail returns the last n bytes of the file at path, or why it cannot be read: it serves messages only.
func tail(path string, n int64) string {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer file.Close() // read only
	if info, err := file.Stat(); err == nil && info.Size() > n {
		if _, err := file.Seek(-n, io.SeekEnd); err != nil {
			return fmt.Sprintf("(no log: %v)", err)
		}
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(text)
}
