// The broker mochi-mqtt on three ports of loopback: plain, TLS with client certificates, WebSocket.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func mutual(pki string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "server.pem"), filepath.Join(pki, "server.key"))
	must(err)
	ca, err := os.ReadFile(filepath.Join(pki, "ca.pem"))
	must(err)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
}

// main takes the three ports and the folder of the certificates.
func main() {
	plain, secure, web, pki := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	broker := mqtt.New(nil)
	broker.Options.Capabilities.ReceiveMaximum = 5
	must(broker.AddHook(new(auth.AllowHook), nil))
	at := func(port string) string { return "127.0.0.1:" + port }
	must(broker.AddListener(listeners.NewTCP(listeners.Config{ID: "plain", Address: at(plain)})))
	must(broker.AddListener(listeners.NewTCP(listeners.Config{ID: "tls", Address: at(secure), TLSConfig: mutual(pki)})))
	must(broker.AddListener(listeners.NewWebsocket(listeners.Config{ID: "web", Address: at(web)})))
	must(broker.Serve())
	fmt.Println("ready")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
}
