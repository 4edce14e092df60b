"""HTML, Markdown, Image and so on, for environments without IPython."""

import io
import os
import struct
from binascii import b2a_base64

from . import lazy
from .channel import dumps

NAMES = (
    "DisplayObject",
    "TextDisplayObject",
    "HTML",
    "Markdown",
    "Latex",
    "Math",
    "SVG",
    "JSON",
    "GeoJSON",
    "Javascript",
    "Pretty",
    "Code",
    "Image",
    "IFrame",
    "YouTubeVideo",
    "VimeoVideo",
    "ScribdDocument",
    "Audio",
    "Video",
    "FileLink",
    "FileLinks",
    "ProgressBar",
)


class DisplayObject:
    """Data with a display method; from a value, a URL or a file."""

    _binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if isinstance(data, os.PathLike):
            data = os.fspath(data)
        if isinstance(data, str) and url is None and filename is None and self._reads_files:
            if data.startswith(("http://", "https://")):
                url, data = data, None
            elif len(data) < 4096 and "\n" not in data and os.path.isfile(data):
                filename, data = data, None
        self.data = data
        self.url = url
        self.filename = None if filename is None else os.fspath(filename)
        self.metadata = metadata or {}
        self.reload()

    _reads_files = False

    def reload(self):
        """Read the file or URL again."""
        if self.filename is not None:
            with open(self.filename, "rb") as file:
                self.data = file.read()
        elif self.url is not None and self._fetches:
            with lazy.stdlib("urllib.request").urlopen(self.url) as response:
                self.data = response.read()
        if not self._binary and isinstance(self.data, bytes):
            self.data = self.data.decode("utf-8")

    _fetches = True

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__

    def _with_metadata(self, data):
        return (data, self.metadata) if self.metadata else data


class TextDisplayObject(DisplayObject):
    """Data that is text."""

    def reload(self):
        super().reload()
        if self.data is not None and not isinstance(self.data, str):
            raise TypeError("%s expects text, not %r" % (type(self).__name__, self.data))


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self._with_metadata(self.data)

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self._with_metadata(self.data)


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self._with_metadata(self.data)


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return self._with_metadata("$\\displaystyle %s$" % self.data.strip("$"))


class SVG(DisplayObject):
    _reads_files = True

    def _repr_svg_(self):
        text = self.data
        start = text.find("<svg")
        return self._with_metadata(text[start:] if start > 0 else text)


class JSON(DisplayObject):
    def __init__(
        self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **kw
    ):
        super().__init__(
            data, url, filename, dict(metadata or {}, expanded=expanded, root=root, **kw)
        )
        if isinstance(self.data, str):
            self.data = lazy.stdlib("json").loads(self.data)

    def _repr_json_(self):
        return self._with_metadata(self.data)


class GeoJSON(JSON):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/geo+json": self.data, "text/plain": repr(self)}, {
            "application/geo+json": self.metadata
        }

    _repr_json_ = None


class Javascript(TextDisplayObject):
    """Code that a page runs, after it has loaded the style sheets `css` and the scripts `lib`."""

    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        self.lib = [lib] if isinstance(lib, str) else list(lib or ())
        self.css = [css] if isinstance(css, str) else list(css or ())
        super().__init__(data, url, filename)

    def _repr_javascript_(self):
        text = self.data or ""
        for address in reversed(self.lib):
            text = (
                "new Promise((loaded, failed) => {\n"
                '  const element = document.createElement("script");\n'
                "  element.onload = loaded;\n  element.onerror = failed;\n"
                "  element.src = %s;\n  document.head.appendChild(element);\n"
                "}).then(() => {\n%s\n});\n" % (dumps(address), text)
            )
        for address in reversed(self.css):
            text = (
                'document.head.appendChild(Object.assign(document.createElement("link"), '
                '{rel: "stylesheet", type: "text/css", href: %s}));\n%s' % (dumps(address), text)
            )
        return text


class Pretty(TextDisplayObject):
    def _repr_pretty_(self, printer, cycle):
        printer.text(self.data)


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def _repr_markdown_(self):
        return "```%s\n%s\n```" % (self.language or "", self.data.rstrip("\n"))

    def __repr__(self):
        return self.data


class Image(DisplayObject):
    _binary = True
    _reads_files = True

    def __init__(
        self,
        data=None,
        url=None,
        filename=None,
        format=None,
        embed=None,
        width=None,
        height=None,
        retina=False,
        unconfined=False,
        metadata=None,
        alt=None,
    ):
        self.width, self.height, self.alt = width, height, alt
        self._fetches = bool(embed)
        if embed is False and isinstance(data, (str, os.PathLike)) and url is None:
            data, url = None, os.fspath(data)
        elif embed is False and filename is not None:
            filename, url = None, os.fspath(filename)
        super().__init__(data, url, filename, metadata)
        name = (self.filename or self.url or "").rpartition(".")[2].lower()
        self.format = (format or self._sniff() or name or "png").lower()
        if retina and self.format == "png" and isinstance(self.data, bytes):
            wide, high = struct.unpack(">II", self.data[16:24])
            self.width, self.height = wide // 2, high // 2

    def _sniff(self):
        head = bytes(self.data[:12]) if isinstance(self.data, (bytes, bytearray)) else b""
        if head.startswith(b"\x89PNG"):
            return "png"
        if head.startswith(b"\xff\xd8"):
            return "jpeg"
        if head.startswith(b"GIF8"):
            return "gif"
        return "webp" if head[8:12] == b"WEBP" else None

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None and self.url:
            sizes = "".join(
                ' %s="%s"' % (n, v)
                for n, v in (("width", self.width), ("height", self.height))
                if v
            )
            return {"text/html": '<img src="%s"%s/>' % (self.url, sizes), "text/plain": repr(self)}
        mime = "image/" + {"jpg": "jpeg", "svg": "svg+xml"}.get(self.format, self.format)
        extra = dict(self.metadata)
        for name in ("width", "height", "alt"):
            if getattr(self, name) is not None:
                extra[name] = getattr(self, name)
        data = self.data
        if mime == "image/svg+xml" and isinstance(data, bytes):
            data = data.decode("utf-8")
        return {mime: data, "text/plain": repr(self)}, {mime: extra} if extra else {}


class IFrame:
    def __init__(self, src, width="100%", height=400, extras=None, **parameters):
        urlencode = lazy.stdlib("urllib.parse").urlencode
        self.src = src + ("?" + urlencode(parameters) if parameters else "")
        self.width, self.height, self.extras = width, height, extras or []

    def _repr_html_(self):
        return (
            '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen %s></iframe>'
            % (
                self.width,
                self.height,
                self.src,
                " ".join(self.extras),
            )
        )


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, **parameters):
        super().__init__("https://www.youtube.com/embed/" + id, width, height, **parameters)


class VimeoVideo(IFrame):
    def __init__(self, id, width=400, height=300, **parameters):
        super().__init__("https://player.vimeo.com/video/%s" % id, width, height, **parameters)


class ScribdDocument(IFrame):
    def __init__(self, id, width=400, height=300, **parameters):
        source = "https://www.scribd.com/embeds/%s/content" % id
        super().__init__(source, width, height, **parameters)


class _Media(DisplayObject):
    _binary = True
    _reads_files = True
    _fetches = False
    _tag = "audio"

    def __init__(self, data=None, filename=None, url=None, embed=None, mimetype=None, **options):
        super().__init__(data, url, filename)
        self.mimetype = mimetype

    def _repr_html_(self):
        source = self.url
        if source is None and isinstance(self.data, (bytes, bytearray)):
            mime = (
                self.mimetype
                or lazy.stdlib("mimetypes").guess_type(self.filename or "")[0]
                or self._tag + "/*"
            )
            source = "data:%s;base64,%s" % (
                mime,
                b2a_base64(self.data, newline=False).decode("ascii"),
            )
        return '<%s controls src="%s"></%s>' % (self._tag, source or "", self._tag)


class Audio(_Media):
    def __init__(
        self, data=None, filename=None, url=None, embed=None, rate=None, autoplay=False, **options
    ):
        if rate is not None and data is not None and not isinstance(data, (str, bytes)):
            data = _wave(data, rate)
            options.setdefault("mimetype", "audio/wav")
        super().__init__(data, filename, url, embed, options.get("mimetype"))


class Video(_Media):
    _tag = "video"

    def __init__(self, data=None, url=None, filename=None, embed=False, mimetype=None, **options):
        if isinstance(data, (str, os.PathLike)) and url is None and filename is None:
            data, filename = None, os.fspath(data)
            if filename.startswith(("http://", "https://")):
                filename, url = None, filename
        if filename is not None and not embed:
            filename, url = None, os.fspath(filename)
        super().__init__(data, filename, url, embed, mimetype)


def _wave(samples, rate):
    """Return samples of one channel as a WAV file, normalized to the maximum volume."""
    wave = lazy.stdlib("wave")
    numbers = [float(s) for s in samples]
    top = max((abs(s) for s in numbers), default=1.0) or 1.0
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(b"".join(struct.pack("<h", int(s / top * 32767)) for s in numbers))
    return target.getvalue()


class FileLink:
    def __init__(self, path, url_prefix="", **options):
        self.path = os.fspath(path)
        self.url_prefix = url_prefix

    def _repr_html_(self):
        return '<a href="%s%s" target="_blank">%s</a><br>' % (self.url_prefix, self.path, self.path)

    def __repr__(self):
        return os.path.abspath(self.path)


class FileLinks(FileLink):
    """Links to the files of a directory and its subdirectories."""

    def __init__(self, path, url_prefix="", included_suffixes=None, recursive=True, **options):
        super().__init__(path, url_prefix)
        if os.path.isfile(self.path):
            raise ValueError("Cannot display a file using FileLinks. Use FileLink to display %r." % path)
        self.included_suffixes = included_suffixes
        self.recursive = recursive

    def _files(self):
        for directory, inner, names in os.walk(self.path):
            inner.sort()
            suffixes = tuple(self.included_suffixes or ("",))
            yield directory, [name for name in sorted(names) if name.endswith(suffixes)]
            if not self.recursive:
                return

    def _repr_html_(self):
        lines = []
        for directory, names in self._files():
            lines.append("%s/<br>" % directory.rstrip("/"))
            for name in names:
                path = os.path.join(directory, name)
                lines.append(
                    '&nbsp;&nbsp;<a href="%s%s" target="_blank">%s</a><br>'
                    % (self.url_prefix, path, name)
                )
        return "\n".join(lines)

    def __repr__(self):
        lines = []
        for directory, names in self._files():
            lines.append("%s/" % directory.rstrip("/"))
            lines += ["  " + name for name in names]
        return "\n".join(lines)


class ProgressBar:
    """A progress bar that is redrawn when `progress` changes."""

    def __init__(self, total):
        self.total = total
        self._progress = 0
        self._id = os.urandom(8).hex()

    def __repr__(self):
        done = int(60 * self._progress / self.total) if self.total else 60
        return "[%s%s] %d/%d" % ("=" * done, " " * (60 - done), self._progress, self.total)

    def _repr_html_(self):
        return "<progress style='width:60ex' max='%d' value='%d'></progress>" % (
            self.total,
            self._progress,
        )

    def display(self):
        from .display import display

        display(self, display_id=self._id)

    def update(self):
        from .display import display

        display(self, display_id=self._id, update=True)

    @property
    def progress(self):
        return self._progress

    @progress.setter
    def progress(self, value):
        self._progress = value
        self.update()

    def __iter__(self):
        self.display()
        self._progress = -1
        return self

    def __next__(self):
        self.progress += 1
        if self.progress < self.total:
            return self.progress
        raise StopIteration
