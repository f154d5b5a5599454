"""Models that the tests watch; imported by programs that they run."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.downsample(x))


class ResNet(nn.Module):
    """Convolutions run in oneDNN, the classifier in oneMKL."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, 2, 3)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1))
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.maxpool(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part(x).view(batch, length, self.heads, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        chance = torch.softmax(torch.matmul(q, k.transpose(-1, -2)), -1)
        return self.out(torch.matmul(chance, v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """In bfloat16 every product runs in oneDNN; `attention` has kernels of its own beside those of its layers."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.embed = nn.Linear(32, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(3))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def resnet():
    torch.manual_seed(0)
    return ResNet().eval(), torch.randn(2, 3, 64, 64)


def resnet_bf16():
    model, image = resnet()
    return model.bfloat16(), image.bfloat16()


def transformer():
    torch.manual_seed(0)
    return Transformer().eval(), torch.randn(2, 16, 32)


def transformer_bf16():
    model, tokens = transformer()
    return model.bfloat16(), tokens.bfloat16()


def encoder_bf16():
    """PyTorch's own encoder: in inference it takes a fast path that calls none of the modules inside."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval().bfloat16()
    return encoder, torch.randn(2, 16, 64).bfloat16()
