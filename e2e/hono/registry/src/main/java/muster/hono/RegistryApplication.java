package muster.hono;

import org.eclipse.hono.deviceregistry.app.AbstractDeviceRegistryApplication;
import org.eclipse.hono.deviceregistry.app.AbstractHttpServerFactory;
import org.eclipse.hono.service.http.HttpServiceConfigOptions;
import org.eclipse.hono.service.http.HttpServiceConfigProperties;

import io.smallrye.config.ConfigMapping;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;

/** Hono's device registry with the data of {@link Registry}. */
@ApplicationScoped
public class RegistryApplication extends AbstractDeviceRegistryApplication {
    @Override
    public String getComponentName() {
        return "registry";
    }

    @Singleton
    static class ManagementServer extends AbstractHttpServerFactory {
        private HttpServiceConfigProperties properties;

        @Inject
        void configure(@ConfigMapping(prefix = "hono.registry.http") final HttpServiceConfigOptions options) {
            properties = new HttpServiceConfigProperties(options);
        }

        @Override
        protected HttpServiceConfigProperties getHttpServerProperties() {
            return properties;
        }
    }
}
