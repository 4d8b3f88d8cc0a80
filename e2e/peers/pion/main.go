// A DTLS 1.2 peer by pion: serves or asks one end of Muster's, with or without connection ids.
//
//	pion serve ADDRESS IDENTITY KEY SUITE [CID-BYTES]
//	pion ask ADDRESS IDENTITY KEY SUITE [CID-BYTES]
//
// Serving, it says back whatever it hears, once, until it is ended; asking, it says "hello", wants it back, and ends.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/pion/dtls/v3"
)

var suites = map[string]dtls.CipherSuiteID{
	"PskCcm8": dtls.TLS_PSK_WITH_AES_128_CCM_8,
	"PskCcm":  dtls.TLS_PSK_WITH_AES_128_CCM,
	"PskGcm":  dtls.TLS_PSK_WITH_AES_128_GCM_SHA256,
}

func fail(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func config(arguments []string) *dtls.Config {
	config := &dtls.Config{
		PSK:             func([]byte) ([]byte, error) { return []byte(arguments[1]), nil },
		PSKIdentityHint: []byte(arguments[0]),
		CipherSuites:    []dtls.CipherSuiteID{suites[arguments[2]]},
	}
	if len(arguments) > 3 {
		length, err := strconv.Atoi(arguments[3])
		fail(err)
		if length == 0 {
			config.ConnectionIDGenerator = dtls.OnlySendCIDGenerator()
		} else {
			config.ConnectionIDGenerator = dtls.RandomCIDGenerator(length)
		}
	}
	return config
}

func serve(address *net.UDPAddr, config *dtls.Config) {
	listener, err := dtls.Listen("udp", address, config)
	fail(err)
	fmt.Println("listening")
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		go func() {
			buffer := make([]byte, 8192)
			for {
				length, err := connection.Read(buffer)
				if err != nil {
					fmt.Println("ended:", err)
					return
				}
				fmt.Printf("received %s from %s\n", buffer[:length], connection.RemoteAddr())
				_, err = connection.Write(buffer[:length])
				fail(err)
			}
		}()
	}
}

func ask(address *net.UDPAddr, config *dtls.Config) {
	connection, err := dtls.Dial("udp", address, config)
	fail(err)
	fail(connection.SetDeadline(time.Now().Add(5 * time.Second)))
	_, err = connection.Write([]byte("hello"))
	fail(err)
	buffer := make([]byte, 8192)
	length, err := connection.Read(buffer)
	fail(err)
	fmt.Printf("received %s\n", buffer[:length])
	fail(connection.Close())
}

func main() {
	address, err := net.ResolveUDPAddr("udp", os.Args[2])
	fail(err)
	config := config(os.Args[3:])
	if os.Args[1] == "serve" {
		serve(address, config)
	}
	ask(address, config)
}
