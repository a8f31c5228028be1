package controlplane

import (
	"fmt"
	"net"
	"strconv"
)

// loopback is the only interface a sandbox listens on.
const loopback = "127.0.0.1"

// Ports are those of one sandbox, all on the loopback interface.
type Ports struct {
	Etcd              int
	EtcdPeer          int
	APIServer         int
	ControllerManager int
	Scheduler         int
	OurScheduler      int
	Kwok              int
	ManagerMetrics    int
	ManagerHealth     int
	ManagerWebhook    int
	Extender          int
	ExtenderMetrics   int
	ExtenderHealth    int
	ManagerAPI        int
}

// freePorts picks ports that nobody listens on. All are held until the last is
// known, so that they differ.
func freePorts() (Ports, error) {
	var p Ports
	for _, port := range []*int{
		&p.Etcd, &p.EtcdPeer, &p.APIServer, &p.ControllerManager,
		&p.Scheduler, &p.OurScheduler, &p.Kwok, &p.ManagerMetrics, &p.ManagerHealth, &p.ManagerWebhook,
		&p.Extender, &p.ExtenderMetrics, &p.ExtenderHealth, &p.ManagerAPI,
	} {
		listener, err := net.Listen("tcp", address(0))
		if err != nil {
			return Ports{}, fmt.Errorf("finding a free port: %w", err)
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// address is where a process listens.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
