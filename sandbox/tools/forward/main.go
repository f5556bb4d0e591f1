// forward makes one TCP address of a sandbox reachable from the machine's
// loopback:
//
//	forward NAMESPACE FIRST_PORT TARGET PORT_FILE
//
// It listens on the first free loopback port at or after FIRST_PORT, writes that
// port to PORT_FILE, enters the network namespace NAMESPACE (a path such as
// /proc/PID/ns/net) by way of nsenter, and copies each connection to TARGET
// there. A socket belongs to the namespace it was opened in, so the listener
// stays outside while every dial happens inside.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const portsTried = 200

func main() {
	log.SetFlags(log.LstdFlags)
	var err error
	switch {
	case len(os.Args) == 5:
		err = listenOutside(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 4 && os.Args[1] == "inside":
		err = serveInside(os.Args[2], os.Args[3])
	default:
		err = errors.New("usage: forward NAMESPACE FIRST_PORT TARGET PORT_FILE")
	}
	log.Fatalf("forward: %v", err)
}

func listenOutside(namespace, firstPort, target, portFile string) error {
	first, err := strconv.Atoi(firstPort)
	if err != nil {
		return fmt.Errorf("first port: %w", err)
	}
	listener, port, err := firstFree(first)
	if err != nil {
		return err
	}
	socket, err := listener.(*net.TCPListener).File() // a duplicate; it must survive exec
	if err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, socket.Fd(), syscall.F_SETFD, 0); errno != 0 {
		return errno
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.WriteFile(portFile+".new", []byte(strconv.Itoa(port)+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.Rename(portFile+".new", portFile); err != nil {
		return err
	}
	fd := strconv.Itoa(int(socket.Fd()))
	arguments := []string{"nsenter", "--net=" + namespace, self, "inside", fd, target}
	return syscall.Exec(nsenter, arguments, os.Environ())
}

func firstFree(first int) (net.Listener, int, error) {
	for port := first; port < first+portsTried; port++ {
		listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return listener, port, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, 0, err
		}
	}
	return nil, 0, fmt.Errorf("no free loopback port from %d to %d", first, first+portsTried-1)
}

func serveInside(descriptor, target string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return fmt.Errorf("listener descriptor: %w", err)
	}
	listener, err := net.FileListener(os.NewFile(uintptr(fd), "listener"))
	if err != nil {
		return err
	}
	for {
		outside, err := listener.Accept()
		if err != nil {
			return err
		}
		go carry(outside.(*net.TCPConn), target)
	}
}

// carry copies both ways until both sides have ended, and passes on a half-close:
// kubectl attach and cp depend on it.
func carry(outside *net.TCPConn, target string) {
	defer outside.Close()
	dialled, err := net.Dial("tcp", target)
	if err != nil {
		log.Print(err)
		return
	}
	inside := dialled.(*net.TCPConn)
	defer inside.Close()
	done := make(chan struct{}, 2)
	copyOneWay := func(to, from *net.TCPConn) {
		_, _ = io.Copy(to, from)
		_ = to.CloseWrite()
		done <- struct{}{}
	}
	go copyOneWay(inside, outside)
	go copyOneWay(outside, inside)
	<-done
	<-done
}
