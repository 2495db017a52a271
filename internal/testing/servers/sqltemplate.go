package servers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// sqlTemplate is an initialised data directory that all servers of this user copy. mysqld takes
// three processor seconds to create one and a tenth of a second to copy it.
//
// The template is in the user's cache. Its name contains a digest of the server's path, size and
// modification time and of the arguments, so an upgrade makes a new one. One template is kept for
// each server. A file lock orders the processes that create, copy and replace it.
type sqlTemplate struct {
	server  string // the program that the template is for
	install string // the program that creates it
	args    []string
}

// mysqlTemplate contains the tests' account, because a member of a group needs it before its first
// write.
func mysqlTemplate(path string) sqlTemplate {
	return sqlTemplate{
		server: path, install: path,
		args: []string{"--initialize-insecure", noFilePriv, initFileArg},
	}
}

// initFileArg stands for the option that names the file of sqlDir.writeAccount.
const initFileArg = "--init-file"

// copyTo copies the template to the data directory of dir. It creates the template first if the
// cache has none.
func (t sqlTemplate) copyTo(ctx context.Context, dir sqlDir) error {
	name, err := t.name()
	if err != nil {
		return err
	}
	cache, err := templatesDir()
	if err != nil {
		return err
	}
	server := filepath.Base(t.server)
	unlock, err := lockFile(filepath.Join(cache, server+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	template := filepath.Join(cache, name)
	if _, err := os.Stat(template); errors.Is(err, fs.ErrNotExist) {
		if err := t.create(ctx, cache, server, template); err != nil {
			return fmt.Errorf("create a data directory: %w", err)
		}
	}
	if err := os.CopyFS(dir.data(), os.DirFS(template)); err != nil {
		return fmt.Errorf("copy a data directory: %w", err)
	}
	return nil
}

// name returns the template's name, which changes with the server.
func (t sqlTemplate) name() (string, error) {
	digest := sha256.New()
	for _, program := range []string{t.server, t.install} {
		path, err := filepath.EvalSymlinks(program)
		if err != nil {
			return "", err
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(digest, path, info.Size(), info.ModTime().UnixNano())
	}
	fmt.Fprintf(digest, "%q", t.args)
	return fmt.Sprintf("%s-%x", filepath.Base(t.server), digest.Sum(nil)[:8]), nil
}

// create replaces all templates of the server by a new one. The last step is a rename, so an
// interrupted creation leaves no template.
func (t sqlTemplate) create(ctx context.Context, cache, server, template string) error {
	old, err := filepath.Glob(filepath.Join(cache, server+"-*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return err
	}
	dir := sqlDir(template + ".new")
	defer os.RemoveAll(string(dir)) // a failure leaves a directory that the next create deletes
	if err := errors.Join(dir.clear(), dir.writeAccount()); err != nil {
		return err
	}
	// Each installation has its own tmpdir, because two with the same one break each other.
	args := []string{"--no-defaults", "--datadir=" + dir.data(), "--tmpdir=" + dir.tmp()}
	for _, arg := range t.args {
		if arg == initFileArg {
			arg += "=" + dir.initFile()
		}
		args = append(args, arg)
	}
	cmd := exec.CommandContext(ctx, t.install, append(args, runAsRoot()...)...)
	cmd.Dir = string(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	// MySQL's auto.cnf holds a server's identity. A start without it creates one.
	err = os.Remove(filepath.Join(dir.data(), "auto.cnf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	syscall.Sync() // otherwise a power failure could leave a template with empty files
	return os.Rename(dir.data(), template)
}

// templatesDir returns the directory of the templates. Without a writable cache it is a directory
// of temporary files.
func templatesDir() (string, error) {
	err := errors.New("no cache directory")
	for _, parent := range []string{serversDir(), os.TempDir()} {
		dir := filepath.Join(parent, fmt.Sprintf("seckill-data-%d", os.Geteuid()))
		if !filepath.IsAbs(dir) {
			continue // HOME is not set
		}
		if err = os.MkdirAll(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	return "", err
}

// lockFile waits for the exclusive lock of a file and returns its release. The kernel releases the
// lock of a process that is killed.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
