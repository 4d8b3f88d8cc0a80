package muster.hono;

import org.eclipse.hono.commandrouter.AdapterInstanceStatusService;
import org.eclipse.hono.commandrouter.app.AbstractApplication;
import org.eclipse.hono.commandrouter.impl.UnknownStatusProvidingService;
import org.eclipse.hono.deviceconnection.common.CacheBasedDeviceConnectionInfo;
import org.eclipse.hono.deviceconnection.common.DeviceConnectionInfo;

import io.opentracing.Tracer;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;

/** Hono's command router with its routing cache in memory, where Hono's own image has Infinispan. */
@ApplicationScoped
public class RouterApplication extends AbstractApplication {
    @Inject
    DeviceConnectionInfo connections;

    @Override
    protected DeviceConnectionInfo getDeviceConnectionInfo() {
        return connections;
    }

    @Singleton
    static class Beans {
        @Produces
        @Singleton
        AdapterInstanceStatusService instances() {
            return new UnknownStatusProvidingService();
        }

        @Produces
        @Singleton
        DeviceConnectionInfo connections(final Tracer tracer, final AdapterInstanceStatusService instances) {
            return new CacheBasedDeviceConnectionInfo(new MemoryCache(), tracer, instances);
        }
    }
}
